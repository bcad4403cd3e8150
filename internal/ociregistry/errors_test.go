package ociregistry_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// TestTransportKinds tells the two mistakes that are made with a registry of
// one's own from one that is down: its authority is not named, or it has no TLS.
func TestTransportKinds(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for name, c := range map[string]struct {
		address string
		want    error
	}{
		"unknown authority": {secure.Listener.Addr().String(), ociregistry.ErrCertificate},
		"no TLS":            {plain.Listener.Addr().String(), ociregistry.ErrPlainHTTP},
		"nobody there":      {"127.0.0.1:1", ociregistry.ErrUnavailable},
	} {
		client, err := ociregistry.NewClient(ociregistry.Options{Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, c.address)
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		repo, err := client.Repository("registry.test/team/plugin")
		if err != nil {
			t.Fatal(err)
		}
		_, err = repo.Resolve(t.Context(), "1.0.0")
		for _, kind := range []error{ociregistry.ErrCertificate, ociregistry.ErrPlainHTTP} {
			if errors.Is(err, kind) != errors.Is(c.want, kind) {
				t.Errorf("%s: %v; want %v", name, err, c.want)
			}
		}
		if !errors.Is(err, ociregistry.ErrUnavailable) {
			t.Errorf("%s: %v; want ErrUnavailable as well", name, err)
		}
	}
}
