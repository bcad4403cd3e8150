//go:build interop

package interop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/interop/siglab"
)

// What fleeting-plugin verify accepts of the samples that real cosign signed:
// every good signature, and those of a platform's manifest, since that is what
// would be installed. All else must be refused with exit code 3.
var (
	acceptedByKey = []string{
		"key-bundle", "key-bundle-referrers", "key-bundle-rekor1", "key-bundle-v2cli", "key-full-bundle", "key-legacy", "key-legacy-oci11",
		"key-legacy-recursive", "key-legacy-rekor1", "neg-platform-only-bundle", "neg-platform-only-legacy",
	}
	acceptedByIdentity = []string{
		"keyless-bundle-referrers", "keyless-bundle-rekor1", "keyless-bundle-rekor1-tsa", "keyless-bundle-rekor2",
		"keyless-legacy-rekor1", "keyless-legacy-rekor1-tsa",
	}
	acceptedByTimestamp = append([]string{"keyless-bundle-tsa", "keyless-legacy-tsa"}, acceptedByIdentity...)
)

// TestSamples holds every sample in the lab's registries against three
// policies, with the finished command.
func TestSamples(t *testing.T) {
	t.Parallel()
	lab, err := siglab.Open(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	tool, _ := executables(t)
	id := fmt.Sprintf("[[rule.identity]]\nissuer = %q\nsubject = %q\ntrusted-root = %q\ninsecure-no-sct = true\n",
		siglab.Issuer, siglab.Subject, lab.Path("trust", "trusted_root.json"))
	list, err := os.ReadFile(lab.Path("samples.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		signer string
		want   []string
	}{
		"key":       {fmt.Sprintf("[[rule.key]]\nfile = %q\n", lab.Path("keys", "cosign.pub")), acceptedByKey},
		"identity":  {id, acceptedByIdentity},
		"timestamp": {id + "timestamp-suffices = true\n", acceptedByTimestamp},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := filepath.Join(t.TempDir(), "policy.toml")
			if err := os.WriteFile(policy, []byte("version = 1\n[[rule]]\nscope = \"**\"\n"+c.signer), 0o600); err != nil {
				t.Fatal(err)
			}
			verdicts := map[int]int{}
			for line := range strings.Lines(string(list)) {
				fields := strings.Split(line, "\t")
				r := run(t, tool, "verify", fields[1], "--policy", policy, "--platform", "linux/amd64")
				want := exitRefused
				if slices.Contains(c.want, fields[0]) {
					want = exitOK
				}
				if r.code != want {
					t.Errorf("%s: exit code %d, want %d\n%s", fields[0], r.code, want, r.text)
				}
				verdicts[r.code]++
			}
			t.Logf("accepted %d, refused %d", verdicts[exitOK], verdicts[exitRefused])
		})
	}
}
