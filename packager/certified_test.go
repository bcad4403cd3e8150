package packager_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

const (
	workflow = "lab-org/lab-plugin/.github/workflows/release.yml"
	commit   = "0123456789012345678901234567890123456789"
)

// keyless signs with certificates of an authority for what a token says.
func keyless(t *testing.T, a *trusttest.Authority, token string) *packager.Signer {
	t.Helper()
	s, err := packager.KeylessSigner(packager.KeylessOptions{
		Token: func(context.Context) (string, error) { return token, nil }, FulcioURL: a.FulcioURL,
		SigningServices: packager.SigningServices{TSAURL: a.TSAURL, TrustedRoot: a.Root},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCertified: what a certificate says of a build is what the provenance says,
// and the plan knows the identity without asking for one.
func TestCertified(t *testing.T) {
	t.Parallel()
	a := trusttest.NewAuthority(t)
	s := keyless(t, a, trusttest.GitHubToken(t, workflow, "refs/tags/v1.2.3", commit))
	expected, err := s.Expected(t.Context())
	if err != nil || a.Issued.Load() != 0 {
		t.Fatalf("%v; %d certificates", err, a.Issued.Load())
	}
	certified, err := s.Certified(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if expected.Identity != certified.Identity || expected.Issuer != certified.Issuer || expected.Identity != "https://github.com/"+workflow+"@refs/tags/v1.2.3" {
		t.Errorf("expected %+v, certified %+v", expected, certified)
	}
	b, ok := packager.CertifiedBuild(*certified)
	want := provenanceFields{
		Type: packager.BuildTypeGitHub, Builder: "https://github.com/" + workflow + "@refs/tags/v1.2.3", Repository: "https://github.com/lab-org/lab-plugin",
		Ref: "refs/tags/v1.2.3", Path: ".github/workflows/release.yml", Source: "git+https://github.com/lab-org/lab-plugin@refs/tags/v1.2.3",
		Commit: commit, Run: "https://github.com/lab-org/lab-plugin/actions/runs/77/attempts/1",
	}
	if diff := cmp.Diff(want, fieldsOf(t, b)); !ok || diff != "" {
		t.Errorf("provenance (-want +got):\n%s", diff)
	}

	person := keyless(t, a, trusttest.EmailToken(t, "me@example.com"))
	expected, err = person.Expected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if certified, err = person.Certified(t.Context()); err != nil || expected.Identity != "me@example.com" || certified.Identity != expected.Identity {
		t.Errorf("%v; expected %+v, certified %+v", err, expected, certified)
	}
	if _, ok := packager.CertifiedBuild(*certified); ok {
		t.Error("a person is a builder")
	}

	signer, _ := keyPair(t)
	if certified, err := signer.Certified(t.Context()); certified != nil || err != nil {
		t.Errorf("a key is certified: %v, %v", certified, err)
	}
}

// TestAttemptsDoNotPileUp: every attempt of a pipeline has another run to name in
// its provenance. Only the first leaves something behind, with a key and without.
func TestAttemptsDoNotPileUp(t *testing.T) {
	t.Parallel()
	a := trusttest.NewAuthority(t)
	key, _ := keyPair(t)
	for name, signer := range map[string]func() *packager.Signer{
		"a key": func() *packager.Signer { return key },
		"keyless": func() *packager.Signer {
			return keyless(t, a, trusttest.GitHubToken(t, workflow, "refs/tags/v1.2.3", commit))
		},
	} {
		for kind, reg := range map[string]*registrytest.Registry{"fallback tags": registrytest.New(t), "referrers API": registrytest.NewReferrers(t)} {
			repo := repository(t, reg.Host+"/demo")
			counts := map[string]int{}
			for attempt := range 3 {
				build := packager.LocalBuild(func(n string) (string, bool) {
					if n == "GITHUB_RUN_ATTEMPT" {
						return fmt.Sprint(attempt + 1), true
					}
					return githubEnv(n)
				})
				provenance, err := build.Provenance()
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(string(provenance.Content), fmt.Sprintf("attempts/%d", attempt+1)) {
					t.Fatalf("attempt %d is not in %s", attempt+1, provenance.Content)
				}
				_, err = packager.Release(t.Context(), scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64")), version(t, "1.0.0"), repo, packager.ReleaseOptions{
					PackOptions: packager.PackOptions{Metadata: metadata()}, Signer: signer(), Predicates: []packager.Predicate{provenance},
				})
				if err != nil {
					t.Fatalf("%s, %s: %v", name, kind, err)
				}
				report, err := packager.Inspect(t.Context(), repo, "1.0.0", packager.InspectOptions{SkipFiles: true})
				if err != nil {
					t.Fatal(err)
				}
				now := map[string]int{"signatures": len(report.Signatures), "attestations": len(report.Attestations)}
				if attempt == 0 {
					counts = now
				}
				if diff := cmp.Diff(counts, now); diff != "" || now["attestations"] != 12 {
					t.Errorf("%s, %s: after attempt %d (-first +now):\n%s", name, kind, attempt+1, diff)
				}
			}
			// Another source is another statement.
			other, err := packager.Build{Type: packager.BuildTypeLocal, Builder: packager.BuildTypeLocal, Source: "git+https://example.com/other"}.Provenance()
			if err != nil {
				t.Fatal(err)
			}
			signed, err := packager.Attest(t.Context(), repo, "1.0.0", signer(), []packager.Predicate{other}, packager.SignOptions{})
			if err != nil || signed.Outcomes[len(signed.Outcomes)-2].New+signed.Outcomes[len(signed.Outcomes)-1].New == 0 {
				said, _ := json.Marshal(signed)
				t.Errorf("%s, %s: another provenance: %v, %s", name, kind, err, said)
			}
		}
	}
}
