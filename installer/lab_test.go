package installer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/trusttest"
)

// sampleSource gives one sample of the lab as version 1.0.0 of a plugin: the
// samples themselves have no version.
type sampleSource struct {
	installer.Source
	index digest.Digest
}

func (s sampleSource) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	if reference == "1.0.0" {
		reference = s.index.String()
	}
	return s.Source.Resolve(ctx, reference)
}

// TestLab goes through everything that real cosign signed against a real private
// sigstore, and the cases that must be refused, with a key, an identity, and
// each with attestations in place of signatures. The samples are resolved, found
// and judged as in an installation.
func TestLab(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	layout, err := installer.OpenLayout(t.Context(), lab.Layout(t))
	if err != nil {
		t.Fatal(err)
	}
	ref := reference(t, "registry.test/x:1.0.0")
	source, err := layout.Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	signers := labSigners(t, lab)
	for _, sample := range lab.Samples() {
		for by, signer := range signers {
			for _, form := range []string{"signature", "attestation"} {
				rule := installer.Rule{Scope: "**", Signers: []installer.Signer{signer}}
				if form == "attestation" {
					rule.AttestationsSuffice = true
					rule.Attestations = []installer.Attestation{{PredicateType: "provenance"}}
				}
				open := func(context.Context, installer.Reference) (installer.Source, error) {
					return sampleSource{source, sample.Index}, nil
				}
				i := newInstaller(t, policyOf(t, rule), installer.WithSource(open), installer.WithPlatform("linux/amd64"))
				v, err := i.Verify(t.Context(), ref)
				want := labVerdict(sample.Name, by, form)
				if (err == nil) != want {
					t.Errorf("%s by %s, %s: got %v; want accepted = %v", sample.Name, by, form, err, want)
				}
				if err != nil && !errors.Is(err, installer.ErrRefused) {
					t.Errorf("%s by %s, %s: %v is no refusal", sample.Name, by, form, err)
				}
				if err == nil && len(v.Verification.Signers()) != 1 {
					t.Errorf("%s by %s, %s: signers %v", sample.Name, by, form, v.Verification.Signers())
				}
			}
		}
	}
}

func labSigners(tb testing.TB, lab *trusttest.LabSamples) map[string]installer.Signer {
	tb.Helper()
	root, err := installer.LoadTrustedRoot(lab.TrustedRoot())
	if err != nil {
		tb.Fatal(err)
	}
	key, err := installer.RequireKey(lab.PublicKey(false), installer.KeyOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	identity, err := installer.RequireIdentity(
		installer.Identity{Issuer: trusttest.LabIssuer, Subject: trusttest.LabSubject},
		// The lab's certificates have no SCT.
		installer.IdentityOptions{Root: root, UnsafeNoSCT: true, TimestampSuffices: true})
	if err != nil {
		tb.Fatal(err)
	}
	return map[string]installer.Signer{"key": key, "identity": identity}
}

// labVerdict is what is right for a sample, by the name that says how it was made.
func labVerdict(name, by, form string) bool {
	if strings.HasPrefix(name, "neg-platform-only") {
		// The lab's question is whether the index is signed. The platform's manifest
		// is, and it is what is installed.
		return by == "key" && form == "signature"
	}
	if strings.HasPrefix(name, "neg-") {
		return false
	}
	keyless := strings.Contains(name, "keyless")
	if keyless != (by == "identity") {
		return false
	}
	attested := strings.Contains(name, "-att-")
	if strings.Contains(name, "full") || strings.HasPrefix(name, "ours-") || name == "keyless-bundle-referrers" {
		return true // these have both
	}
	return attested == (form == "attestation")
}
