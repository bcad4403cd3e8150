package cloud

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestMicroversionIsVerified: an endpoint that does not take the microversion
// would drop tags, and whose answers do not show it is asked for one that cannot
// exist.
func TestMicroversionIsVerified(t *testing.T) {
	t.Parallel()
	const list = "/v2.1/servers/detail"
	for name, row := range map[string]struct {
		header, nova string // of answers
		probe        int    // status of the answer to the impossible microversion
		kind         error
		says         string
		probes       int
	}{
		"as asked":                {header: "compute 2.96"},
		"as asked, older header":  {nova: "2.96"},
		"with another service's":  {header: "volume 3.70", nova: "2.96"},
		"another":                 {header: "compute 2.1", kind: ErrUnsupported, says: "answered in microversion 2.1, and was asked for 2.96"},
		"dropped on the way back": {probe: http.StatusNotAcceptable, probes: 1},
		"ignored":                 {probe: http.StatusOK, kind: ErrUnsupported, says: "compute_endpoint_override: https://nova.example/v2.1", probes: 1},
		"not to be told now":      {probe: http.StatusForbidden, kind: ErrForbidden, probes: 1},
		"nonsense":                {header: "compute latest", probe: http.StatusNotAcceptable, probes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, func(r *http.Request) (*http.Response, error) {
					answer := reply(http.StatusOK, `{"servers": []}`)
					switch {
					case r.URL.Path == "/v2.1/flavors/detail" && strings.HasPrefix(r.Header.Get("OpenStack-API-Version"), "compute 2.99"):
						answer = reply(row.probe, `{"flavors": [], "computeFault": {"code": 406, "message": "Version is not supported"}}`)
					case r.URL.Path == "/v2.1/servers" && r.Method == http.MethodPost:
						answer = reply(http.StatusAccepted, `{"server": {"id": "`+stageServer+`"}}`)
					case r.URL.Path != list:
						return nil, nil //nolint:nilnil // as usual
					}
					answer.Header = http.Header{"Content-Type": {"application/json"}}
					if row.header != "" {
						answer.Header.Add("OpenStack-API-Version", row.header)
					}
					if row.nova != "" {
						answer.Header.Set("X-OpenStack-Nova-API-Version", row.nova)
					}
					return answer, nil
				})
				client := s.connect(t)
				for range 2 {
					_, err := client.ListServers(t.Context(), "tag", time.Hour)
					if row.kind == nil && err != nil || row.kind != nil && (!errors.Is(err, row.kind) || !strings.Contains(err.Error(), row.says)) {
						t.Errorf("got %v, want %v with %q", err, row.kind, row.says)
					}
				}
				_, err := client.CreateServer(t.Context(), ServerSpec{Name: "n"})
				if row.kind == nil && err != nil || row.kind != nil && !errors.Is(err, row.kind) {
					t.Errorf("creation: got %v, want %v", err, row.kind)
				}
				if posts := s.count("POST /v2.1/servers"); (posts == 1) != (row.kind == nil) {
					t.Errorf("creations sent: %d", posts)
				}
				if probes := s.count("GET /v2.1/flavors/detail"); row.kind == nil && probes != row.probes {
					t.Errorf("probes: %d, want %d", probes, row.probes)
				}
			})
		})
	}
}

// TestMicroversionIsVerifiedAgain: what is behind an address changes while the
// plugin runs, and does not drop the tags of servers that are created from then on.
func TestMicroversionIsVerifiedAgain(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		header  string // of answers, later
		created bool   // by a creation, rather than a listing
		posts   int
	}{
		"another":               {header: "compute 2.1"},
		"none":                  {},
		"another, to a create":  {header: "compute 2.1", created: true, posts: 1},
		"as before":             {header: "compute 2.96", posts: 2},
		"as before, to creates": {header: "compute 2.96", created: true, posts: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				header := "compute 2.96"
				s := newStage(t, func(r *http.Request) (*http.Response, error) {
					answer := reply(http.StatusOK, `{"servers": [], "flavors": []}`)
					switch {
					case r.Method == http.MethodPost && r.URL.Path == "/v2.1/servers":
						answer = reply(http.StatusAccepted, `{"server": {"id": "`+stageServer+`"}}`)
					case !strings.HasPrefix(r.URL.Path, "/v2.1/servers") && !strings.HasPrefix(r.URL.Path, "/v2.1/flavors"):
						return nil, nil //nolint:nilnil // as usual
					}
					answer.Header = http.Header{"Content-Type": {"application/json"}}
					if header != "" {
						answer.Header.Set("OpenStack-API-Version", header)
					}
					return answer, nil
				})
				client := s.connect(t)
				if _, err := client.ListServers(t.Context(), "tag", time.Hour); err != nil {
					t.Fatal(err)
				}
				header = row.header
				if !row.created {
					if _, err := client.ListServers(t.Context(), "tag", time.Hour); (err == nil) != (row.posts > 0) {
						t.Errorf("listing: %v", err)
					}
				}
				for range 2 {
					if _, err := client.CreateServer(t.Context(), ServerSpec{Name: "n"}); err != nil && !errors.Is(err, ErrUnsupported) {
						t.Errorf("creation: %v", err)
					}
				}
				if posts := s.count("POST /v2.1/servers"); posts != row.posts {
					t.Errorf("creations sent: %d, want %d", posts, row.posts)
				}
			})
		})
	}
}

// TestLegacyAPI: what the catalogue names is Nova's API from before there were
// microversions.
func TestLegacyAPI(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(r *http.Request) (*http.Response, error) {
			switch {
			case r.URL.Host == "keystone.example":
				login := usual(r)
				answer := reply(http.StatusCreated, strings.ReplaceAll(stageLogin(0), "https://nova.example", "https://nova.example/v2/p1"))
				answer.Header.Set("X-Subject-Token", login.Header.Get("X-Subject-Token"))
				return answer, nil
			case r.URL.Path == "/v2/":
				return reply(http.StatusOK, `{"version": {"id": "v2.0", "version": "", "min_version": "", "status": "SUPPORTED"}}`), nil
			default:
				return nil, nil //nolint:nilnil // as usual
			}
		})
		_, err := Connect(t.Context(), s.options())
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "compute_endpoint_override: https://nova.example/v2.1 ") {
			t.Errorf("got %v, want the remedy", err)
		}
	})
}

// TestOddVersionDocuments: only the lack of a document is made up for, by asking
// for what is needed.
func TestOddVersionDocuments(t *testing.T) {
	t.Parallel()
	const without = "a proxy's 404, a gateway's 404, multiple choices"
	for name, row := range oddAnswers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, func(r *http.Request) (*http.Response, error) {
					if r.URL.Host == "keystone.example" {
						return nil, nil //nolint:nilnil // as usual
					}
					return row.answer(r, "version")
				})
				began := time.Now()
				client, err := Connect(t.Context(), s.options())
				switch {
				case strings.Contains(without, name) && (err != nil || client.Microversion().String() != "2.52"):
					t.Errorf("got %v, want the microversion that is needed", err)
				case !strings.Contains(without, name) && err == nil:
					t.Errorf("taken for microversion %s", client.Microversion())
				}
				if took := time.Since(began); took > callTimeout+time.Minute || s.read > 5*answerLimit {
					t.Errorf("took %v for %d bytes", took, s.read)
				}
				if err != nil {
					assertSafe(t, err.Error())
				}
			})
		})
	}
}

// TestNovaIsPutBack: while the plugin runs, Nova comes to have no more than an older
// microversion. That is enough, as long as it has tags.
func TestNovaIsPutBack(t *testing.T) {
	t.Parallel()
	for most, want := range map[string]string{"2.79": "2.79", "2.52": "2.52", "2.38": ""} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, func(r *http.Request) (*http.Response, error) {
				asked := strings.TrimPrefix(r.Header.Get("OpenStack-API-Version"), "compute ")
				switch {
				case r.URL.Host == "keystone.example" || r.URL.Path == "/v2.1/":
					return nil, nil //nolint:nilnil // as usual
				case asked > most:
					return reply(http.StatusNotAcceptable, `{"computeFault": {"code": 406, "message": "Version `+asked+` is not supported by the API. Minimum is 2.1 and maximum is `+most+`."}}`), nil
				}
				answer := reply(http.StatusOK, `{"servers": []}`)
				if r.Method == http.MethodPost {
					answer = reply(http.StatusAccepted, `{"server": {"id": "`+stageServer+`"}}`)
				}
				answer.Header.Set("OpenStack-API-Version", "compute "+asked)
				return answer, nil
			})
			client := s.connect(t)
			_, createErr := client.CreateServer(t.Context(), ServerSpec{Name: "n"})
			_, listErr := client.ListServers(t.Context(), "tag", time.Hour)
			if want == "" {
				if !errors.Is(listErr, ErrUnsupported) || createErr == nil || !strings.Contains(listErr.Error(), "maximum is 2.38") {
					t.Errorf("%s: got %v and %v", most, createErr, listErr)
				}
				return
			}
			if createErr != nil || listErr != nil || client.Microversion().String() != want || s.count("POST /v2.1/servers") != 2 {
				t.Errorf("%s: got %v and %v in %s, %d creations sent", most, createErr, listErr, client.Microversion(), s.count("POST /v2.1/servers"))
			}
			if got := strings.Count(s.logged(), "offers an older microversion"); got != 1 {
				t.Errorf("lines: %d", got)
			}
		})
	}
}
