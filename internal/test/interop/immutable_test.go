//go:build interop

package interop_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/interop/siglab"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
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
	t.Parallel()
	lab, err := siglab.Open(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	tool, dist := executables(t)
	for _, behaviour := range immutables() {
		for _, m := range modes() {
			t.Run(behaviour+", "+m.name, func(t *testing.T) {
				t.Parallel()
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
					m.cosign(t, lab, repository+"@"+d, forms()[0])
				}
				m.installs(t, lab, tool, repository, "1.2.3")
				runnerInstalls(t, reg.Host, "interop/plugin", "1.2.3", dist)

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
				m.installs(t, lab, tool, repository, "1.2")
				runnerInstalls(t, reg.Host, "interop/plugin", "1.2", dist)
				runnerInstalls(t, reg.Host, "interop/plugin", "1.2.4", dist)
			})
		}
	}
}

// TestSignatureRepository: where nothing can be added to a tag, a second signer
// signs in a repository of its own, where cosign 2 and 3 look with its variable.
// Cosign 2 does not get there if the first signer published bundles.
func TestSignatureRepository(t *testing.T) {
	lab, err := siglab.Open(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	tool, dist := executables(t)
	for _, f := range forms()[:2] {
		t.Run(f.name, func(t *testing.T) {
			reg := immutable(t, immutables()[1])
			repository, apart := reg.Host+"/interop/plugin", reg.Host+"/signatures/second"
			at := repository + ":1.2.3"
			if r := run(t, tool, "release", dist, at, "--signature-format", f.name, "--no-run", "--no-checksums",
				"--key", lab.Path("keys", "other.key"), "--quiet"); r.code != exitOK {
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
				for version, accepts := range map[int]bool{2: !f.bundle, 3: true} {
					if _, err := lab.Cosign(t.Context(), version, "verify", "--new-bundle-format=false", "--insecure-ignore-tlog",
						"--trusted-root", lab.Path("trust", "trusted_root.json"), "--key", lab.Path("keys", "cosign.pub"), repository+"@"+d); (err == nil) != accepts {
						t.Errorf("cosign %d accepts: %t, %v", version, !accepts, err)
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
		})
	}
}
