package cloud

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestUnanswered(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err  error
		want bool
	}{
		"no answer":            {&Error{Kind: ErrTransient}, true},
		"gateway":              {&Error{Status: 502, Kind: ErrTransient}, true},
		"rate":                 {&Error{Status: 429, Kind: ErrTransient}, true},
		"credentials":          {&Error{Status: 401, Kind: ErrUnauthorized}, true},
		"credentials, wrapped": {fmt.Errorf("x: %w", &Error{Kind: ErrUnauthorized}), true},
		"Nova's own failure":   {&Error{Status: 500, Kind: ErrTransient}, false},
		"refusal":              {&Error{Status: 409, Kind: ErrConflict}, false},
		"policy":               {&Error{Status: 403, Kind: ErrForbidden}, false},
		"anything else":        {errors.New("x"), false},
		"nothing":              {nil, false},
	} {
		if got := Unanswered(row.err); got != row.want {
			t.Errorf("%s: got %v, want %v", name, got, row.want)
		}
	}
}

// TestACallThatFailsSaysWhy: what the group writes on its servers is in the address
// of each listing, and does not hide the reason behind it.
func TestACallThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	const tag = "fleeting:a-group-with-a-long-name"
	for reason, fail := range map[string]func(*http.Request, string) (*http.Response, error){
		"connection reset": breaks, "context deadline exceeded": hang,
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				created := false
				s := newStage(t, func(r *http.Request) (*http.Response, error) {
					switch {
					case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/servers"):
						created = true
						return reply(http.StatusAccepted, `{"server": {"id": "`+stageServer+`"}}`), nil
					case created && strings.HasSuffix(r.URL.Path, "/servers/detail"):
						return fail(r, "")
					case strings.HasSuffix(r.URL.Path, "/servers/detail"):
						return reply(http.StatusOK, `{"servers": []}`), nil
					default:
						return nil, nil //nolint:nilnil // as usual
					}
				})
				client := s.connect(t)
				if _, err := client.ListServers(t.Context(), tag, time.Hour); err != nil {
					t.Fatal(err)
				}
				spec := ServerSpec{Name: "n", Tags: []string{tag}, Metadata: map[string]string{"fleeting:group": tag, "fleeting:process": "abcdefghijkl on-this-manager"}}
				if _, err := client.CreateServer(t.Context(), spec); err != nil {
					t.Fatal(err)
				}
				_, err := client.ListServers(t.Context(), tag, time.Hour)
				if err == nil || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), "https://nova.example/v2.1/servers/detail\"") || strings.Contains(err.Error(), "not shown") {
					t.Errorf("got %v, want %q in it", err, reason)
				}
			})
		})
	}
}
