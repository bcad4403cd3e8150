//go:build !windows

package ociregistry_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
)

// helpers puts credential helpers into a folder of its own, and that into PATH. They
// are shell scripts.
func helpers(t *testing.T, scripts map[string]string) {
	t.Helper()
	bin := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(bin, "docker-credential-"+name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// config writes a configuration and returns a store of it, and of nothing else.
func config(t *testing.T, content string) (*ociregistry.CredentialStore, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := ociregistry.OpenCredentialStore(ociregistry.CredentialSources{
		Files: []string{path}, AllowPlainText: true, HelperTimeout: patience(content),
	})
	if err != nil {
		t.Fatal(err)
	}
	return store, path
}

// patience is short only for the helper that never answers: another may need long to
// start on a busy machine.
func patience(config string) time.Duration {
	if strings.Contains(config, `"silent"`) {
		return 200 * time.Millisecond
	}
	return time.Minute
}

// TestMostSpecificCredential is containers-auth.json(5): of several entries the one
// that says most about a repository counts.
// https://github.com/oras-project/oras/issues/1597
func TestMostSpecificCredential(t *testing.T) {
	helpers(t, map[string]string{"own": `read server; echo "{\"Username\":\"helped $server\",\"Secret\":\"x\"}"`})
	const auths = `"auths":{
		"registry.test":{"auth":"aG9zdDp4"}, "registry.test/team":{"auth":"dGVhbTp4"}, "https://registry.test/team/plugin/":{"auth":"cGx1Z2luOng="},
		"REGISTRY.test:5000":{"auth":"cG9ydDp4"}, "HTTPS://Spelled.test/V2/":{"auth":"c3BlbGxlZDp4"}, "http://slash.test/v1":{"auth":"c2xhc2g6eA=="}, "https://index.docker.io/v1/":{"auth":"aHViOng="}, "empty.test":{}}`
	for name, c := range map[string]struct{ config, name, want string }{
		"the repository":                 {`{` + auths + `}`, "registry.test/team/plugin", "plugin"},
		"below the repository":           {`{` + auths + `}`, "registry.test/team/plugin/arm", "plugin"},
		"its group":                      {`{` + auths + `}`, "registry.test/team/other", "team"},
		"no group of a similar name":     {`{` + auths + `}`, "registry.test/teams/other", "host"},
		"the registry":                   {`{` + auths + `}`, "registry.test", "host"},
		"another port":                   {`{` + auths + `}`, "registry.test:5000/team/plugin", "port"},
		"a scheme in capitals":           {`{` + auths + `}`, "spelled.test/x", "spelled"},
		"a version without a slash":      {`{` + auths + `}`, "slash.test/x", "slash"},
		"Docker Hub":                     {`{` + auths + `}`, "docker.io/library/plugin", "hub"},
		"another registry":               {`{` + auths + `}`, "other.test/team/plugin", ""},
		"the path before the helper":     {`{` + auths + `,"credHelpers":{"registry.test":"own"}}`, "registry.test/team/x", "team"},
		"the helper before the host":     {`{` + auths + `,"credHelpers":{"registry.test":"own"}}`, "registry.test/x", "helped registry.test"},
		"the entry before the store":     {`{` + auths + `,"credsStore":"own"}`, "registry.test/x", "host"},
		"the store for docker's marker":  {`{` + auths + `,"credsStore":"own"}`, "empty.test/x", "helped empty.test"},
		"the store":                      {`{"credsStore":"own"}`, "registry.test/x", "helped registry.test"},
		"the store's name of Docker Hub": {`{"credsStore":"own"}`, "docker.io/x/y", "helped https://index.docker.io/v1/"},
		"nothing":                        {``, "registry.test/x", ""},
	} {
		store, _ := config(t, c.config)
		got, err := store.Get(t.Context(), c.name)
		if err != nil || got.Username != c.want {
			t.Errorf("%s: user %q, %v; want %q", name, got.Username, err, c.want)
		}
	}
}

// TestCredentialOfRepository uses two entries for two repositories of one registry.
func TestCredentialOfRepository(t *testing.T) {
	t.Parallel()
	reg := registrytest.NewReferrers(t)
	reg.Behave(t, registrytest.Named(t, "Basic"))
	store, _ := config(t, `{"auths":{"`+reg.Host+`":{"auth":"d3Jvbmc6eA=="},"`+reg.Host+`/some/plugin":{"username":"user","password":"secret"}}}`)
	client, err := ociregistry.NewClient(ociregistry.Options{CredentialStore: store})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"/some/plugin": ociregistry.ErrNotFound, "/other/plugin": ociregistry.ErrUnauthorized} {
		repo, err := client.Repository(reg.Host + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := repo.Resolve(t.Context(), "1.0.0"); !errors.Is(err, want) {
			t.Errorf("%s: %v; want %v", name, err, want)
		}
	}
}

// TestHelpers: one that is not there, is silent, fails, or is a path is named with
// the file that asks for it.
// https://github.com/awslabs/amazon-ecr-credential-helper/issues/137
// https://github.com/oras-project/oras/issues/2020
func TestHelpers(t *testing.T) {
	helpers(t, map[string]string{
		"silent":  "sleep 60 & wait",
		"fails":   "echo 'no token; run aws sso login'; exit 1",
		"mute":    "echo 'segmentation fault' >&2; exit 3",
		"prose":   "echo hello",
		"without": "echo 'credentials not found in native keychain'; exit 1",
		"leaks":   `echo '{"Username":"me","Secret":"hunter2"}'; exit 1`,
		"garbage": `head -c 200000 /dev/zero | tr '\\0' '\\033'`,
		"empty":   "true",
	})
	marker := filepath.Join(t.TempDir(), "ran")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("docker-credential-evil", []byte("#!/bin/sh\ntouch "+marker+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config string
		kind   error
		want   []string
	}{
		"missing":   {`{"credsStore":"desktop"}`, ociregistry.ErrHelper, []string{"docker-credential-desktop", "credsStore", "not installed"}},
		"silent":    {`{"credHelpers":{"registry.test":"silent"}}`, ociregistry.ErrHelper, []string{"docker-credential-silent", "credHelpers, for registry.test", "did not answer within"}},
		"fails":     {`{"credsStore":"fails"}`, ociregistry.ErrHelper, []string{"run aws sso login"}},
		"mute":      {`{"credsStore":"mute"}`, ociregistry.ErrHelper, []string{"segmentation fault", "exit status 3"}},
		"prose":     {`{"credsStore":"prose"}`, ociregistry.ErrHelper, []string{"did not answer with JSON"}},
		"a path":    {`{"credHelpers":{"registry.test":"../../evil"}}`, ociregistry.ErrConfig, []string{`"../../evil"`}},
		"here":      {`{"credsStore":"./evil"}`, ociregistry.ErrConfig, []string{`"./evil"`}},
		"an option": {`{"credsStore":"evil -x"}`, ociregistry.ErrConfig, []string{`"evil -x"`}},
		"a secret":  {`{"credsStore":"leaks"}`, ociregistry.ErrHelper, []string{"failed (exit status 1)"}},
		"garbage":   {`{"credsStore":"garbage"}`, ociregistry.ErrHelper, []string{"did not answer with JSON"}},
		"empty":     {`{"credsStore":"empty"}`, ociregistry.ErrHelper, []string{"did not answer with JSON"}},
		"found nothing": {
			`{"credsStore":"without"}`, nil, nil,
		},
	} {
		store, path := config(t, c.config)
		// Reading, writing and forgetting go the same way.
		_, err := store.Get(t.Context(), "registry.test/team/plugin")
		for what, err := range map[string]error{"get": err, "logout": store.Logout(t.Context(), "registry.test")} {
			if c.kind == nil {
				if what == "get" && err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s, %s: %v; want %v, and the file", name, what, err, c.kind)
				continue
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%s, %s: %q has what the helper wrote in it", name, what, err)
			}
			for _, text := range c.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%s, %s: %v; want %q in it", name, what, err, text)
				}
			}
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program of the working folder ran")
	}
}

// TestHelperLeavesAgent: a helper that starts an agent, which holds its output, has
// answered when it ends.
func TestHelperLeavesAgent(t *testing.T) {
	helpers(t, map[string]string{"agent": `sleep 60 & echo '{"Username":"me","Secret":"x"}'`})
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(`{"credsStore":"agent"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := ociregistry.OpenCredentialStore(ociregistry.CredentialSources{Files: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.Get(t.Context(), "registry.test/x"); err != nil || got.Username != "me" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestLoginThroughLink: the file that a symbolic link leads to is written, there or
// not, and the link stays. What else is in it stays, too.
func TestLoginThroughLink(t *testing.T) {
	t.Parallel()
	reg := registrytest.NewReferrers(t)
	client, err := ociregistry.NewClient(ociregistry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, there := range []bool{true, false} {
		dir := t.TempDir()
		link, real := filepath.Join(dir, "config.json"), filepath.Join(dir, "dotfiles", "docker.json")
		if err := os.Mkdir(filepath.Dir(real), 0o700); err != nil {
			t.Fatal(err)
		}
		if there {
			if err := os.WriteFile(real, []byte(`{"HttpHeaders":{"a":"b"}}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("dotfiles/docker.json", link); err != nil {
			t.Fatal(err)
		}
		store, err := ociregistry.OpenCredentialStore(ociregistry.CredentialSources{Files: []string{link}, AllowPlainText: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Login(t.Context(), client, reg.Host, ociregistry.Credential{Username: "me", Password: "x"}); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(real)
		if err != nil || !strings.Contains(string(content), reg.Host) || strings.Contains(string(content), "HttpHeaders") != there {
			t.Errorf("there before %v: %s, %v", there, content, err)
		}
		if err := store.Logout(t.Context(), reg.Host); err != nil {
			t.Error(err)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("there before %v: the link is gone: %v", there, err)
		}
	}
}

// TestBrokenConfig: what is wrong with a configuration is said without any of its
// content.
func TestBrokenConfig(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"no JSON": `{"auths":{"registry.test":{"auth":"c2VjcmV0`, "a list": `{"auths":[]}`, "a number": `{"credsStore":7}`,
	} {
		path := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ociregistry.OpenCredentialStore(ociregistry.CredentialSources{Files: []string{path}})
		if !errors.Is(err, ociregistry.ErrConfig) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "c2Vj") {
			t.Errorf("%s: %v", name, err)
		}
	}
	store, _ := config(t, `{"auths":{"registry.test":{"auth":"c2VjcmV0"}}}`)
	if _, err := store.Get(t.Context(), "registry.test"); !errors.Is(err, ociregistry.ErrConfig) || strings.Contains(err.Error(), "secret") {
		t.Errorf("no colon: %v", err)
	}
}

// TestLoginSpellings stores one entry a host, whichever way it is written, and
// https:// is what makes a server on loopback need TLS.
func TestLoginSpellings(t *testing.T) {
	t.Parallel()
	reg := registrytest.NewReferrers(t)
	store, path := config(t, `{"auths":{"https://`+reg.Host+`":{"auth":"b2xkOng="},"`+reg.Host+`/team":{"auth":"dGVhbTp4"}}}`)
	if got := store.TLSHosts(); len(got) != 1 || got[0] != reg.Host {
		t.Errorf("hosts with TLS: %q", got)
	}
	client, err := ociregistry.NewClient(ociregistry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Login(t.Context(), client, reg.Host, ociregistry.Credential{Username: "new", Password: "x"}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(content), "https://") || !strings.Contains(string(content), reg.Host+"/team") {
		t.Errorf("%s, %v", content, err)
	}
	if got, err := store.Get(context.Background(), reg.Host); got.Username != "new" || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if err := store.Logout(t.Context(), reg.Host); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Get(t.Context(), reg.Host+"/team/x"); got.Username != "team" || err != nil {
		t.Errorf("logging out of the registry took the group's entry: %+v, %v", got, err)
	}
}
