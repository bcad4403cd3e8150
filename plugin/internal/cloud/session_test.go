package cloud

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestRefusedCredentialsChangeNothing: the TLS settings of a clouds.yaml whose
// credentials are refused take no effect either; "verify: false" least of all.
func TestRefusedCredentialsChangeNothing(t *testing.T) {
	t.Parallel()
	keystone := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(keystone.Close)
	folder := write(t, map[string]string{"clouds.yaml": `
clouds:
  c:
    auth: {auth_url: "` + keystone.URL + `/v3", username: u, password: wrong, project_name: p}
    verify: false
`})
	before := keystone.Client().Transport
	s := &session{
		opts:      Options{Cloud: "c", CloudsFile: filepath.Join(folder, "clouds.yaml"), LookupEnv: environment(nil)},
		transport: &swapTransport{}, logins: logins{random: rand.Float64}, log: slog.New(slog.DiscardHandler),
	}
	s.transport.use(before)
	if err := s.authenticate(t.Context()); err == nil {
		t.Fatal("the credentials were not refused")
	}
	if after := *s.transport.current.Load(); after != before {
		t.Errorf("the transport is %+v, and was %+v", after, before)
	}
}

// TestWhatIsNotTriedAgain: a certificate does not get better within seconds,
// while a network may.
func TestWhatIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	untrusted := httptest.NewUnstartedServer(answer)
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	plain := httptest.NewServer(answer)
	t.Cleanup(plain.Close)
	closed := httptest.NewServer(answer)
	closed.Close()
	for name, row := range map[string]struct {
		url, says string
		again     bool
	}{
		"a certificate of nobody's": {untrusted.URL, "x509: certificate signed by unknown authority", false},
		"no TLS":                    {strings.Replace(plain.URL, "http:", "https:", 1), "server gave HTTP response to HTTPS client", false},
		"nobody listens":            {closed.URL, "connection refused", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := write(t, map[string]string{"clouds.yaml": `
clouds:
  c:
    auth: {auth_url: "` + row.url + `/v3", username: u, password: p, project_name: p}
`})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			again := 0
			_, err := Connect(ctx, Options{
				Cloud: "c", CloudsFile: filepath.Join(folder, "clouds.yaml"), LookupEnv: environment(nil),
				Retrying: func(error) {
					again++
					cancel() // once is enough to see it
				},
			})
			// Windows begins what it says with a capital.
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(row.says)) {
				t.Errorf("got %v, want %q", err, row.says)
			}
			if again != map[bool]int{true: 1}[row.again] {
				t.Errorf("tried again: %d times", again)
			}
			if !unsent(err) {
				t.Error("a request may have been sent")
			}
		})
	}
}
