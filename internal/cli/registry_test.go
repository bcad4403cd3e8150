package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// registry returns registry flags parsed from args in an environment.
func registry(t *testing.T, env map[string]string, args ...string) (*cli.App, *cli.RegistryFlags) {
	t.Helper()
	app := cli.New(nil, nil, &bytes.Buffer{}, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags := app.RegistryFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return app, flags
}

func writeCredentials(t *testing.T, path, auth string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	content := fmt.Sprintf(`{"auths": {"registry.test": {"auth": %q}}}`, auth)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

type credentialPlace struct {
	name  string
	files map[string]string
	env   map[string]string
	args  []string
	want  string
}

func TestCredentialPlaces(t *testing.T) {
	t.Parallel()
	const docker, podman = "ZG9ja2VyOng=", "cG9kbWFuOng=" // docker:x, podman:x
	tests := []credentialPlace{
		{"docker's in the home folder", map[string]string{".docker/config.json": docker}, map[string]string{"HOME": ""}, nil, "docker"},
		{"DOCKER_CONFIG", map[string]string{"d/config.json": docker}, map[string]string{"DOCKER_CONFIG": "d"}, nil, "docker"},
		{"podman's in the home folder", map[string]string{".config/containers/auth.json": podman}, map[string]string{"HOME": ""}, nil, "podman"},
		{
			"REGISTRY_AUTH_FILE comes first",
			map[string]string{"a.json": podman, ".docker/config.json": docker},
			map[string]string{"HOME": "", "REGISTRY_AUTH_FILE": "a.json"},
			nil, "podman",
		},
		{
			"the flag is the only place",
			map[string]string{"f.json": podman, ".docker/config.json": docker},
			map[string]string{"HOME": ""},
			[]string{"--registry-config", "f.json"},
			"podman",
		},
		{"nowhere", nil, map[string]string{"HOME": ""}, nil, ""},
	}
	if runtime.GOOS != "windows" { // which has no such folder
		tests = append(tests, credentialPlace{
			"podman's of this session", map[string]string{"r/containers/auth.json": podman}, map[string]string{"HOME": "", "XDG_RUNTIME_DIR": "r"}, nil, "podman",
		})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			for name, auth := range tt.files {
				writeCredentials(t, filepath.Join(home, name), auth)
			}
			env := map[string]string{}
			for name, value := range tt.env {
				env[name] = filepath.Join(home, value)
				if name == "HOME" {
					env["USERPROFILE"] = env[name]
				}
			}
			args := append([]string(nil), tt.args...)
			if len(args) == 2 {
				args[1] = filepath.Join(home, args[1])
			}
			_, flags := registry(t, env, args...)
			store, err := flags.Credentials(false)
			if err != nil {
				t.Fatal(err)
			}
			got, err := store.Get(t.Context(), "registry.test")
			if err != nil || got.Username != tt.want {
				t.Errorf("user name = %q, %v; want %q", got.Username, err, tt.want)
			}
		})
	}
}

func TestRegistryClientRefuses(t *testing.T) {
	t.Parallel()
	home := map[string]string{"HOME": t.TempDir()}
	for _, args := range [][]string{
		{"--client-cert", "c.pem"},
		{"--client-key", "k.pem"},
		{"--ca-file", filepath.Join(t.TempDir(), "missing.pem")},
	} {
		app, flags := registry(t, home, args...)
		if _, err := flags.Client(); app.CodeOf(err) != cli.Usage {
			t.Errorf("%v: %v; want a mistake in usage", args, err)
		}
	}
	app, flags := registry(t, nil)
	if _, err := flags.Client(); err != nil {
		t.Errorf("reading without a home folder: %v", err)
	}
	if _, err := flags.Credentials(true); app.CodeOf(err) != cli.Usage {
		t.Errorf("writing credentials without a home folder: %v", err)
	}
}

// TestPlainHTTPByName: what names no registry is refused, and hosts may be written
// in capitals.
func TestPlainHTTPByName(t *testing.T) {
	t.Parallel()
	home := map[string]string{"HOME": t.TempDir()}
	for text, want := range map[string]string{
		"Registry.test:5000": "registry.test:5000", "registry.test/": "registry.test",
		"https://registry.test": "", "http://registry.test": "", "registry.test/team": "", "": "", "a b": "",
	} {
		app, flags := registry(t, home, "--insecure-plain-http", text)
		opts, err := flags.Options()
		switch {
		case want == "" && (app.CodeOf(err) != cli.Usage || app.HintOf(err) == ""):
			t.Errorf("%q: %v; want a mistake in usage with a hint", text, err)
		case want != "" && (err != nil || len(opts.PlainHTTP) != 1 || opts.PlainHTTP[0] != want):
			t.Errorf("%q: %q, %v; want %q", text, opts.PlainHTTP, err, want)
		}
	}
}

// TestMissingCredentialFile: a file that a flag names must be there to be read, and
// one that a variable names is missed aloud. login writes it.
func TestMissingCredentialFile(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "auth.json")
	app, flags := registry(t, map[string]string{"HOME": t.TempDir()}, "--registry-config", missing)
	if _, err := flags.Options(); app.CodeOf(err) != cli.Usage || !strings.Contains(fmt.Sprint(err), missing) || app.HintOf(err) == "" {
		t.Errorf("%v; want a mistake in usage that names the file", err)
	}
	_, flags = registry(t, map[string]string{"HOME": t.TempDir()}, "--registry-config", missing)
	if _, err := flags.Credentials(true); err != nil {
		t.Fatal(err)
	}
	if _, err := flags.Client(); err != nil {
		t.Errorf("login: %v", err)
	}
	app, flags = registry(t, map[string]string{"HOME": t.TempDir(), "REGISTRY_AUTH_FILE": missing})
	var errs bytes.Buffer
	app.Err = &errs
	if _, err := flags.Options(); err != nil || !strings.Contains(errs.String(), missing) || !strings.Contains(errs.String(), "REGISTRY_AUTH_FILE") {
		t.Errorf("REGISTRY_AUTH_FILE: %v, and %q; want a warning that names the file and the variable", err, errs.String())
	}
}

func TestRegistryErrors(t *testing.T) {
	t.Parallel()
	app, _ := registry(t, nil)
	for err, want := range map[error]cli.Code{
		ociregistry.ErrNotFound:       cli.NotFound,
		ociregistry.ErrUnauthorized:   cli.Network,
		ociregistry.ErrForbidden:      cli.Network,
		ociregistry.ErrRateLimited:    cli.Network,
		ociregistry.ErrUnavailable:    cli.Network,
		ociregistry.ErrDigestMismatch: cli.Refused,
	} {
		wrapped := &ociregistry.Error{Op: "fetch", Ref: "registry.test/x", Kind: err}
		if got := app.CodeOf(wrapped); got != want || app.HintOf(wrapped) == "" {
			t.Errorf("%v: code %d, want %d; hint %q", err, got, want, app.HintOf(wrapped))
		}
	}
	for err, flag := range map[error]string{ociregistry.ErrCertificate: "--ca-file", ociregistry.ErrPlainHTTP: "--insecure-plain-http"} {
		if hint := app.HintOf(fmt.Errorf("resolving: %w", err)); app.CodeOf(err) != cli.Network || !strings.Contains(hint, flag) {
			t.Errorf("%v: hint %q; want %s in it", err, hint, flag)
		}
	}
	app.MapError(ociregistry.ErrNotFound, cli.Refused, "")
	if got := app.CodeOf(ociregistry.ErrNotFound); got != cli.Refused {
		t.Errorf("a command's own mapping comes first: code %d", got)
	}
}
