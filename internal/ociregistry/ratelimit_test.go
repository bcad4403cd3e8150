package ociregistry_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
)

// TestRetryAfter is INTEROP 10: a registry that limits its clients is asked no
// more, and whoever waits hears how long and who asked.
// https://github.com/hashicorp/packer/issues/13634
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		creds  ociregistry.CredentialFunc
		header map[string]string
		want   string
	}{
		"anonymous": {nil, map[string]string{"Retry-After": "90"}, "without credentials"},
		// Docker Hub: https://docs.docker.com/docker-hub/usage/pulls/
		"by its reset": {nil, map[string]string{"RateLimit-Reset": "90", "RateLimit-Limit": "100;w=21600", "RateLimit-Remaining": "0;w=21600"}, "it allows 100 in 6h0m0s"},
		"somebody": {func(context.Context, string) (ociregistry.Credential, error) {
			return ociregistry.Credential{Username: "me", Password: "secret"}, nil
		}, map[string]string{"Retry-After": "90"}, "as me"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t, registrytest.WithPassword("me", "secret"))
			challenges := 1
			if test.creds == nil {
				challenges = 0
				reg = registrytest.New(t)
			}
			repo := openWith(t, reg, ociregistry.Options{Credentials: test.creds})
			reg.Gate.Break(t, registrytest.Fault{Path: "/manifests/", Skip: challenges, Status: http.StatusTooManyRequests, Header: test.header})
			_, err := repo.Resolve(t.Context(), "1.0.0")
			if !errors.Is(err, ociregistry.ErrRateLimited) || ociregistry.RetryAfter(err) != 90*time.Second {
				t.Errorf("%v, to wait %v; want ErrRateLimited, 90 s", err, ociregistry.RetryAfter(err))
			}
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "1m30s") || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v; want %q in it", err, test.want)
			}
			if requests := reg.Gate.Requests(); len(requests) > 2 {
				t.Errorf("asked again: %v", requests)
			}
		})
	}
}
