package cli

import (
	"context"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// EnvCredential gives what DOCKER_AUTH_CONFIG has for a host, for tests.
func (a *App) EnvCredential(ctx context.Context, host string) (ociregistry.Credential, error) {
	docker, _ := a.envCredentials()
	return docker(ctx, host)
}
