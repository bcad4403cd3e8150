//go:build interop

package trust_test

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/evidence"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/interop/siglab"
)

// cosignIsWrong lists the samples that `cosign verify` accepts and we do not:
// cosign 3 takes any attestation in a bundle for a signature.
var cosignIsWrong = []string{
	"key-att-bundle", "key-att-bundle-referrers", "key-att-bundle-v2cli",
	"keyless-att-bundle-rekor1", "keyless-att-bundle-rekor1-tsa", "keyless-att-bundle-rekor2", "neg-att-wrong-type-bundle",
}

// TestVerdictsLive compares our verdict on what lies in the lab's registries
// with that of cosign 2 and 3, sample by sample.
func TestVerdictsLive(t *testing.T) {
	t.Parallel()
	lab, err := siglab.Open(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	all := liveRequirements(t, lab)
	var mu sync.Mutex
	agreed := map[bool]int{}
	var wrong []string
	compare := func(t *testing.T, name, repository, mode string, r trust.Requirement) {
		cosign := cosignVerdict(t, lab, mode, repository)
		ours := liveVerdict(t, r, repository)
		want := cosign && !slices.Contains(cosignIsWrong, name)
		if want != (ours == nil) {
			t.Errorf("cosign accepts: %v, ours: %v", cosign, ours)
		}
		mu.Lock()
		defer mu.Unlock()
		if cosign != want {
			wrong = append(wrong, name)
		}
		if want == (ours == nil) {
			agreed[want]++
		}
	}
	t.Run("samples", func(t *testing.T) {
		for name, repository := range liveSamples(t, lab) {
			for mode, r := range all {
				t.Run(name+", "+mode, func(t *testing.T) {
					t.Parallel()
					compare(t, name, repository, mode, r)
				})
			}
		}
	})
	slices.Sort(wrong)
	if diff := cmp.Diff(cosignIsWrong, wrong); diff != "" {
		t.Errorf("where cosign takes an attestation for a signature: %s", diff)
	}
	t.Logf("the same verdict: %d accepted, %d refused", agreed[true], agreed[false])
}

func liveRequirements(tb testing.TB, lab *siglab.Lab) map[string]trust.Requirement {
	tb.Helper()
	read := func(elem ...string) []byte {
		raw, err := os.ReadFile(lab.Path(elem...))
		if err != nil {
			tb.Fatal(err)
		}
		return raw
	}
	roots, err := trust.LoadTrustedRoot(read("trust", "trusted_root.json"))
	if err != nil {
		tb.Fatal(err)
	}
	key, err := trust.RequireKey(read("keys", "cosign.pub"), trust.KeyOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	id, err := trust.RequireIdentity(trust.Identity{Issuer: siglab.Issuer, Subject: siglab.Subject}, trust.IdentityOptions{Roots: roots, UnsafeNoSCT: true})
	if err != nil {
		tb.Fatal(err)
	}
	return map[string]trust.Requirement{"key": key, "id": id}
}

// liveSamples maps the names of the samples to repositories.
func liveSamples(tb testing.TB, lab *siglab.Lab) map[string]string {
	tb.Helper()
	list, err := os.ReadFile(lab.Path("samples.tsv"))
	if err != nil {
		tb.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(list)) {
		fields := strings.Split(line, "\t")
		found[fields[0]] = strings.TrimSuffix(fields[1], ":v1.2.3")
	}
	if len(found) < 50 {
		tb.Fatalf("%d samples only", len(found))
	}
	return found
}

// cosignVerdict is true if one of cosign's ways to verify a signature accepts.
func cosignVerdict(tb testing.TB, lab *siglab.Lab, mode, repository string) bool {
	tb.Helper()
	flags := []string{"--trusted-root", lab.Path("trust", "trusted_root.json")}
	if mode == "key" {
		flags = append(flags, "--key", lab.Path("keys", "cosign.pub"), "--insecure-ignore-tlog")
	} else {
		flags = append(flags, "--certificate-identity", siglab.Subject, "--certificate-oidc-issuer", siglab.Issuer, "--insecure-ignore-sct")
	}
	at := repository + ":v1.2.3"
	for _, try := range []struct {
		version int
		args    []string
	}{
		{2, []string{"verify", "--offline"}},
		{2, []string{"verify", "--offline", "--experimental-oci11"}},
		{3, []string{"verify"}},
		{3, []string{"verify", "--use-signed-timestamps"}},
	} {
		if mode == "key" && slices.Contains(try.args, "--use-signed-timestamps") {
			continue
		}
		if _, err := lab.Cosign(tb.Context(), try.version, slices.Concat(try.args, flags, []string{at})...); err == nil {
			return true
		}
	}
	return false
}

func liveVerdict(tb testing.TB, r trust.Requirement, repository string) error {
	tb.Helper()
	client, err := ociregistry.NewClient(ociregistry.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	repo, err := client.Repository(repository)
	if err != nil {
		tb.Fatal(err)
	}
	index, err := repo.Resolve(tb.Context(), "v1.2.3")
	if err != nil {
		tb.Fatal(err)
	}
	var found []trust.Evidence
	var search evidence.Search
	err = search.Discover(tb.Context(), repo, index, func(piece evidence.Found) bool {
		found = append(found, piece.Evidence)
		return true
	})
	if err != nil {
		tb.Fatal(err)
	}
	chain := chainOf(tb, index.Digest, func(d digest.Digest) []byte {
		desc, err := repo.Resolve(tb.Context(), d.String())
		if err != nil {
			tb.Fatal(err)
		}
		raw, err := repo.FetchAll(tb.Context(), desc, artifact.ManifestLimit)
		if err != nil {
			tb.Fatal(err)
		}
		return raw
	})
	_, err = evaluate(tb, signedBy(r), chain, index.Digest, found)
	return err
}
