//go:build interop

package interop_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/interop/siglab"
	"github.com/radome-io/fleeting-plugin-openstack/internal/registrytest"
)

// immutables are registries that write no tag twice, with and without the
// referrers API.
func immutables() []string {
	return []string{"no tag is ever written twice", "no tag is ever written twice, and there is no referrers API"}
}

// immutable starts one.
func immutable(t *testing.T, behaviour string) *registrytest.Registry {
	t.Helper()
	reg := registrytest.NewReferrers(t)
	reg.Behave(t, registrytest.Named(t, behaviour))
	return reg
}

// TestReleasesWhereTagsAreImmutable publishes to such a registry, has cosign 2 and
// 3 verify every signature and attestation, and installs under a policy. Publishing
// again writes nothing, and the next version is published beside aliases that stay.
func TestReleasesWhereTagsAreImmutable(t *testing.T) {
	lab, err := siglab.Open(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	tool, dist := command(t, t.TempDir(), "fleeting-plugin"), executables(t)
	for _, behaviour := range immutables() {
		for _, m := range modes() {
			t.Run(behaviour+", "+m.name, func(t *testing.T) {
				reg := immutable(t, behaviour)
				repository := reg.Host + "/interop/plugin"
				release := func(version string) result {
					return run(t, tool, slices.Concat([]string{
						"release", dist, repository + ":" + version, "--no-run", "--no-checksums", "--title", "interop", "--quiet",
					}, m.signFlags(t, lab))...)
				}
				if r := release("1.2.3"); r.code != exitOK {
					t.Fatalf("release: %d\n%s", r.code, r.text)
				}
				for _, d := range digests(t, repository) {
					m.cosign(t, lab, repository+"@"+d)
				}
				install := func(version string) {
					for other, code := range map[bool]int{false: exitOK, true: exitRefused} {
						const as = "registry.example/interop/plugin"
						r := run(t, tool, "install", repository+":"+version, "--as", as, "--platform", "linux/amd64", "--dir", t.TempDir(),
							"--policy", m.policy(t, lab, other, repository, as))
						if r.code != code {
							t.Errorf("install of %s, another signer %v: exit code %d, want %d\n%s", version, other, r.code, code, r.text)
						}
					}
				}
				install("1.2.3")

				reg.Gate.Forget()
				if r := release("1.2.3"); r.code != exitOK {
					t.Errorf("the same release again: %d\n%s", r.code, r.text)
				}
				for _, r := range reg.Gate.Requests() {
					if r.Method == http.MethodPost || r.Method == http.MethodPut && strings.Contains(r.Path, "/manifests/sha256-") {
						t.Errorf("the same release again: %s %s", r.Method, r.Path)
					}
				}

				r := release("1.2.4")
				if r.code != exitOK || !strings.Contains(r.text, ":1.2: the alias stays on 1.2.3") {
					t.Errorf("the next release: %d\n%s", r.code, r.text)
				}
				install("1.2")
			})
		}
	}
}

// TestSignatureRepository: where nothing can be added to a tag, a second signer
// signs in a repository of its own, where cosign 2 and 3 look with its variable.
func TestSignatureRepository(t *testing.T) {
	lab, err := siglab.Open(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	tool, dist := command(t, t.TempDir(), "fleeting-plugin"), executables(t)
	reg := immutable(t, immutables()[1])
	repository, apart := reg.Host+"/interop/plugin", reg.Host+"/signatures/second"
	at := repository + ":1.2.3"
	if r := run(t, tool, "release", dist, at, "--no-run", "--no-checksums", "--key", lab.Path("keys", "other.key"), "--quiet"); r.code != exitOK {
		t.Fatalf("release: %d\n%s", r.code, r.text)
	}
	const exitNetwork = 5
	sign := []string{"sign", at, "--key", lab.Path("keys", "cosign.key")}
	if r := run(t, tool, sign...); r.code != exitNetwork || !strings.Contains(r.text, "does not move the tag") {
		t.Errorf("a second signature in the same place: %d\n%s", r.code, r.text)
	}
	if r := run(t, tool, append(sign, "--signature-repository", apart)...); r.code != exitOK {
		t.Fatalf("sign: %d\n%s", r.code, r.text)
	}
	t.Setenv("COSIGN_REPOSITORY", apart)
	for _, d := range digests(t, repository) {
		for _, version := range []int{2, 3} {
			if _, err := lab.Cosign(t.Context(), version, "verify", "--new-bundle-format=false", "--insecure-ignore-tlog",
				"--trusted-root", lab.Path("trust", "trusted_root.json"), "--key", lab.Path("keys", "cosign.pub"), repository+"@"+d); err != nil {
				t.Error(err)
			}
		}
	}
	verify := []string{"verify", at, "--key", lab.Path("keys", "cosign.pub"), "--platform", "linux/amd64"}
	if r := run(t, tool, verify...); r.code != exitRefused {
		t.Errorf("verify without the signature repository: %d\n%s", r.code, r.text)
	}
	if r := run(t, tool, append(verify, "--signature-repository", apart)...); r.code != exitOK {
		t.Errorf("verify with the signature repository: %d\n%s", r.code, r.text)
	}
}
