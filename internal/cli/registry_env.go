package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// envCredentials finds credentials where GitLab CI puts them: the content of a
// Docker config in DOCKER_AUTH_CONFIG, and for the project's own registry
// CI_REGISTRY with CI_REGISTRY_USER and CI_REGISTRY_PASSWORD, else CI_JOB_TOKEN
// (https://docs.gitlab.com/ci/variables/predefined_variables/).
func (a *App) envCredentials() (docker, ci ociregistry.CredentialFunc) {
	docker = func(ctx context.Context, host string) (ociregistry.Credential, error) {
		content := a.Env("DOCKER_AUTH_CONFIG")
		if content == "" {
			return ociregistry.Credential{}, nil
		}
		return credentialIn(ctx, content, host)
	}
	ci = func(_ context.Context, host string) (ociregistry.Credential, error) {
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
	return docker, ci
}

// authEntry is an entry of auths in Docker's config file.
type authEntry struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// credentialIn looks in the order of GitLab Runner: the helper of the registry,
// then auths, then the helper for all registries.
func credentialIn(ctx context.Context, content, host string) (ociregistry.Credential, error) {
	var config struct {
		Auths       map[string]authEntry `json:"auths"`
		CredHelpers map[string]string    `json:"credHelpers"`
		CredsStore  string               `json:"credsStore"`
	}
	if err := json.Unmarshal([]byte(content), &config); err != nil {
		// The text of the error could have part of a password in it.
		return ociregistry.Credential{}, WithCode(fmt.Errorf("DOCKER_AUTH_CONFIG is not JSON"), Usage)
	}
	for _, key := range slices.Sorted(maps.Keys(config.CredHelpers)) {
		if serverOf(key) == serverOf(host) {
			return helperCredential(ctx, config.CredHelpers[key], key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(config.Auths)) {
		if serverOf(key) == serverOf(host) {
			return config.Auths[key].credential(key)
		}
	}
	if config.CredsStore != "" {
		return helperCredential(ctx, config.CredsStore, host)
	}
	return ociregistry.Credential{}, nil
}

// helperCredential asks a helper. One that fails is an error, not a lack of
// credentials: what is private would look as if it were not there.
func helperCredential(ctx context.Context, helper, server string) (ociregistry.Credential, error) {
	c, err := ociregistry.HelperCredential(ctx, helper, server)
	if err != nil {
		return c, fmt.Errorf("DOCKER_AUTH_CONFIG: %w", err)
	}
	return c, nil
}

func (e authEntry) credential(key string) (ociregistry.Credential, error) {
	c := ociregistry.Credential{
		Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken, AccessToken: e.RegistryToken,
	}
	if e.Auth == "" {
		return c, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(e.Auth)
	user, password, ok := strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":")
	if err != nil || !ok {
		return ociregistry.Credential{}, WithCode(fmt.Errorf("DOCKER_AUTH_CONFIG: auth of %s is not user:password in base64", key), Usage)
	}
	c.Username, c.Password = user, password
	return c, nil
}

// serverOf brings the spellings of a registry in Docker's config into one.
func serverOf(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	host, _, _ := strings.Cut(key, "/")
	switch host {
	case "docker.io", "index.docker.io", "registry-1.docker.io":
		return "docker.io"
	}
	return host
}
