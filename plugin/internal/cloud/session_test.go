package cloud

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
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
		opts:      Options{Cloud: "c", CloudsFile: filepath.Join(folder, "clouds.yaml"), LookupEnv: env(nil)},
		transport: &swapTransport{}, log: slog.New(slog.DiscardHandler),
	}
	s.transport.use(before)
	if err := s.authenticate(t.Context()); err == nil {
		t.Fatal("the credentials were not refused")
	}
	if after := *s.transport.current.Load(); after != before {
		t.Errorf("the transport is %+v, and was %+v", after, before)
	}
}
