package ociregistry_test

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// TestLoopback speaks to servers on loopback: with TLS to one that has it, without
// to one that has none, unless anything says that it must have it.
// https://github.com/oras-project/oras/issues/1106
func TestLoopback(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	secure, plain := httptest.NewTLSServer(answer), httptest.NewServer(answer)
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(authority, content, 0o600); err != nil {
		t.Fatal(err)
	}
	host := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	folder := func(s *httptest.Server) string {
		dir, name := t.TempDir(), host(s)
		if runtime.GOOS == "windows" {
			name = strings.ReplaceAll(name, ":", "") // which no name has there
		}
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "ca.crt"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	forAll := map[string]ociregistry.TLSFiles{"": {CAFile: authority}}
	for name, c := range map[string]struct {
		server *httptest.Server
		opts   ociregistry.Options
		want   error
	}{
		"plain":                         {plain, ociregistry.Options{}, ociregistry.ErrNotFound},
		"plain, an authority for all":   {plain, ociregistry.Options{TLS: forAll}, ociregistry.ErrNotFound},
		"plain, its own authority":      {plain, ociregistry.Options{TLS: map[string]ociregistry.TLSFiles{host(plain): {CAFile: authority}}}, ociregistry.ErrPlainHTTP},
		"plain, a folder of its own":    {plain, ociregistry.Options{CertificateFolders: []string{folder(plain)}}, ociregistry.ErrPlainHTTP},
		"plain, logged in with https":   {plain, ociregistry.Options{TLSHosts: []string{host(plain)}}, ociregistry.ErrPlainHTTP},
		"secure, nothing is trusted":    {secure, ociregistry.Options{}, ociregistry.ErrCertificate},
		"secure, an authority for all":  {secure, ociregistry.Options{TLS: forAll}, ociregistry.ErrNotFound},
		"secure, a folder of its own":   {secure, ociregistry.Options{CertificateFolders: []string{folder(secure)}}, ociregistry.ErrNotFound},
		"secure, and plain is asked":    {secure, ociregistry.Options{PlainHTTP: []string{host(secure)}}, ociregistry.ErrAnswer},
		"secure, of another's folder":   {secure, ociregistry.Options{CertificateFolders: []string{folder(plain)}}, ociregistry.ErrCertificate},
		"secure, logged in with https":  {secure, ociregistry.Options{TLSHosts: []string{host(secure)}, TLS: forAll}, ociregistry.ErrNotFound},
		"plain, and plain is asked for": {plain, ociregistry.Options{PlainHTTP: []string{host(plain)}, TLSHosts: []string{host(plain)}}, ociregistry.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.opts.Retries = -1
			client, err := ociregistry.NewClient(c.opts)
			if err != nil {
				t.Fatal(err)
			}
			repo, err := client.Repository(host(c.server) + "/some/plugin")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := repo.Resolve(t.Context(), "1.0.0"); !errors.Is(err, c.want) {
					t.Errorf("%v; want %v", err, c.want)
				}
			}
		})
	}
}

// TestParseServer reads registries as people write them for login.
func TestParseServer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		host string
		tls  bool
	}{
		"registry.test":               {"registry.test", false},
		"Registry.Test:5000/":         {"registry.test:5000", false},
		"https://127.0.0.1:5000":      {"127.0.0.1:5000", true},
		"HTTPS://registry.test/v2/":   {"registry.test", true},
		"https://index.docker.io/v1/": {"docker.io", true},
		"[::1]:5000":                  {"[::1]:5000", false},
		"":                            {},
		"https://":                    {},
		"http://registry.test":        {},
		"ftp://registry.test":         {},
		"registry.test/team":          {},
		"https://registry.test/team":  {},
		"registry test":               {},
		"user@registry.test":          {},
		"registry.test:port":          {},
	} {
		host, tls, err := ociregistry.ParseServer(text)
		if host != want.host || tls != want.tls || (err != nil) != (want.host == "") || err != nil && !errors.Is(err, ociregistry.ErrInvalid) {
			t.Errorf("%q: %q, %v, %v; want %q, %v", text, host, tls, err, want.host, want.tls)
		}
	}
}

// TestLoginOverTLS: https:// in front of a registry on loopback has it spoken to
// with TLS, at once and by those who read what was stored.
func TestLoginOverTLS(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	t.Cleanup(plain.Close)
	path := filepath.Join(t.TempDir(), "config.json")
	store, err := ociregistry.OpenCredentialStore(ociregistry.CredentialSources{Files: []string{path}, AllowPlainText: true})
	if err != nil {
		t.Fatal(err)
	}
	client, err := ociregistry.NewClient(ociregistry.Options{Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	host := plain.Listener.Addr().String()
	if err := store.Login(t.Context(), client, "https://"+host, ociregistry.Credential{Username: "me", Password: "x"}); !errors.Is(err, ociregistry.ErrPlainHTTP) {
		t.Errorf("https:// to a server without TLS: %v; want ErrPlainHTTP", err)
	}
	if err := store.Login(t.Context(), client, host, ociregistry.Credential{Username: "a:b", Password: "x"}); !errors.Is(err, ociregistry.ErrInvalid) {
		t.Errorf("a user name with a colon: %v; want ErrInvalid", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("something was stored")
	}
}
