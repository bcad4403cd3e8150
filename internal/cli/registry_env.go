package cli

import (
	"context"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// dockerAuthConfig is the variable in which GitLab CI has the content of a Docker
// config.
const dockerAuthConfig = "DOCKER_AUTH_CONFIG"

// credentialContents are the configurations that are in no file.
func (a *App) credentialContents() []ociregistry.NamedContent {
	content := a.Env(dockerAuthConfig)
	if content == "" {
		return nil
	}
	return []ociregistry.NamedContent{{Name: dockerAuthConfig, Content: []byte(content)}}
}

// jobCredential is the credential of a GitLab CI job for its project's own
// registry: CI_REGISTRY with CI_REGISTRY_USER and CI_REGISTRY_PASSWORD, else
// CI_JOB_TOKEN (https://docs.gitlab.com/ci/variables/predefined_variables/).
func (a *App) jobCredential(_ context.Context, host string) (ociregistry.Credential, error) {
	if registry := a.Env("CI_REGISTRY"); registry == "" || registry != host {
		return ociregistry.Credential{}, nil
	}
	if user, password := a.Env("CI_REGISTRY_USER"), a.Env("CI_REGISTRY_PASSWORD"); user != "" && password != "" {
		return ociregistry.Credential{Username: user, Password: password}, nil
	}
	if token := a.Env("CI_JOB_TOKEN"); token != "" {
		return ociregistry.Credential{Username: "gitlab-ci-token", Password: token}, nil
	}
	return ociregistry.Credential{}, nil
}
