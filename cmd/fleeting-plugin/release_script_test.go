package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// publishing gives scripts a registry, as $REGISTRY, and folders with
// executables of version 1.2.3, as $DIST and $DIST_NEXT (1.2.4), and a key pair,
// as $KEY, $KEY_PASSWORD and $PUBLIC_KEY, and another as $STRANGER and
// $STRANGER_PUBLIC. $FULCIO, $TSA and $TRUSTED_ROOT are a sigstore instance, $TOKEN
// and its like tokens for it. Each script uses a repository of its own.
func publishing(t *testing.T) func(*testscript.Env) error {
	t.Helper()
	registry := registrytest.New(t)
	root := t.TempDir()
	for _, version := range []string{"1.2.3", "1.2.4"} {
		for _, platform := range []string{"linux/amd64", "linux/arm64"} {
			system, arch, _ := strings.Cut(platform, "/")
			cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version,
				"-o", filepath.Join(root, version, platform, "plugin"), "../../packager/testdata/plugin")
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOOS="+system, "GOARCH="+arch)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("building for %s: %v\n%s", platform, err, out)
			}
		}
	}
	private, public, err := packager.GenerateKeyPair([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	authority, stranger := trusttest.NewAuthority(t), trusttest.NewKey(t)
	for name, content := range map[string][]byte{
		"cosign.key": private, "cosign.pub": public, "trusted-root.json": authority.Root,
		"stranger.key": stranger.PrivatePEM(t), "stranger.pub": stranger.PublicPEM(t),
	} {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const commit, workflows = "0123456789abcdef0123456789abcdef01234567", "lab-org/lab-plugin/.github/workflows/"
	tokens := map[string]string{
		"TOKEN":        trusttest.GitHubToken(t, workflows+"release.yml", "refs/tags/v1.2.3", commit),
		"TOKEN_NEXT":   trusttest.GitHubToken(t, workflows+"release.yml", "refs/tags/v1.2.4", commit),
		"TOKEN_OTHER":  trusttest.GitHubToken(t, workflows+"other.yml", "refs/tags/v1.2.4", commit),
		"TOKEN_PERSON": trusttest.EmailToken(t, "me@example.com"),
	}
	caches := goCaches(t)
	return func(env *testscript.Env) error {
		for name, dir := range caches {
			env.Setenv(name, dir)
		}
		for name, token := range tokens {
			env.Setenv(name, token)
		}
		env.Setenv("FULCIO", authority.FulcioURL)
		env.Setenv("TSA", authority.TSAURL)
		env.Setenv("TRUSTED_ROOT", filepath.Join(root, "trusted-root.json"))
		env.Setenv("STRANGER", filepath.Join(root, "stranger.key"))
		env.Setenv("STRANGER_PUBLIC", filepath.Join(root, "stranger.pub"))
		env.Setenv("KEY", filepath.Join(root, "cosign.key"))
		env.Setenv("PUBLIC_KEY", filepath.Join(root, "cosign.pub"))
		env.Setenv("KEY_PASSWORD", "secret")
		env.Setenv("REGISTRY", registry.Host)
		env.Setenv("DIST", filepath.Join(root, "1.2.3"))
		env.Setenv("DIST_NEXT", filepath.Join(root, "1.2.4"))
		return nil
	}
}
