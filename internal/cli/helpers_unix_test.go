//go:build !windows

package cli_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDockerAuthConfigHelpers asks a real helper, as a CI job's variable names it.
// It sets PATH, so it is not parallel.
func TestDockerAuthConfigHelpers(t *testing.T) {
	bin := t.TempDir()
	helper := "#!/bin/sh\nread server\n[ \"$server\" = broken.test ] && exit 1\n" +
		"echo \"{\\\"ServerURL\\\":\\\"$server\\\",\\\"Username\\\":\\\"helped\\\",\\\"Secret\\\":\\\"s\\\"}\"\n"
	if err := os.WriteFile(filepath.Join(bin, "docker-credential-own"), []byte(helper), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	const auths = `"auths": {"registry.test": {"auth": "ZG9ja2VyOng="}}`
	for name, test := range map[string]struct {
		config, host, want string
		fails              bool
	}{
		"helper of the registry comes first": {`{` + auths + `, "credHelpers": {"registry.test": "own"}}`, "registry.test", "helped", false},
		"auths before the helper for all":    {`{` + auths + `, "credsStore": "own"}`, "registry.test", "docker", false},
		"helper for all":                     {`{"credsStore": "own"}`, "other.test", "helped", false},
		"of another registry":                {`{"credHelpers": {"registry.test": "own"}}`, "other.test", "", false},
		"a helper that fails":                {`{"credHelpers": {"broken.test": "own"}}`, "broken.test", "", true},
		"no such helper":                     {`{"credHelpers": {"registry.test": "missing"}}`, "registry.test", "", true},
		"a path for a name":                  {`{"credHelpers": {"registry.test": "../own"}}`, "registry.test", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, flags := registry(t, map[string]string{"DOCKER_AUTH_CONFIG": test.config})
			opts, err := flags.Options()
			if err != nil {
				t.Fatal(err)
			}
			got, err := opts.CredentialStore.Get(t.Context(), test.host)
			if (err != nil) != test.fails || got.Username != test.want {
				t.Errorf("user name = %q, %v; want %q", got.Username, err, test.want)
			}
		})
	}
}
