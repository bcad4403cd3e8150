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
