package installer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
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

// TestGitHub verifies what GitHub's action attests with push-to-registry: one
// provenance, and no signature beside it. Its statement names the image without
// a tag, and as another registry than it is read from.
func TestGitHub(t *testing.T) {
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
	index := lab.Sample(t, "keyless-att-bundle-github").Index
	referrers, err := source.Referrers(t.Context(), ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: index})
	if err != nil || len(referrers) != 1 {
		t.Fatalf("%v, %v", referrers, err)
	}
	for _, part := range []string{`"artifactType":"application/vnd.dev.sigstore.bundle.v0.3+json"`, `"dev.sigstore.bundle.content":"dsse-envelope"`} {
		if content := string(lab.Content(t, referrers[0].Digest)); !strings.Contains(content, part) {
			t.Errorf("%s is not in %s", part, content)
		}
	}
	const repository, builder = "https://github.com/lab-org/lab-plugin", trusttest.LabSubject
	for name, c := range map[string]struct {
		attestation installer.Attestation
		suffices    bool
		ok          bool
	}{
		"all of it":           {installer.Attestation{Builder: builder, SourceRepository: repository, SourceRef: "refs/tags/v*"}, true, true},
		"no conditions":       {installer.Attestation{}, true, true},
		"another repository":  {installer.Attestation{SourceRepository: repository + "2"}, true, false},
		"another ref":         {installer.Attestation{SourceRef: "refs/heads/*"}, true, false},
		"another builder":     {installer.Attestation{Builder: "https://github.com/actions/runner/github-hosted"}, true, false},
		"a signature, please": {installer.Attestation{SourceRepository: repository}, false, false},
	} {
		c.attestation.PredicateType = "provenance"
		rule := installer.Rule{
			Scope: "**", Signers: []installer.Signer{labSigners(t, lab)["identity"]}, AttestationsSuffice: c.suffices,
			Attestations: []installer.Attestation{c.attestation},
		}
		open := func(context.Context, installer.Reference) (installer.Source, error) {
			return sampleSource{source, index}, nil
		}
		_, err := newInstaller(t, policyOf(t, rule), installer.WithSource(open), installer.WithPlatform("linux/amd64")).Verify(t.Context(), ref)
		if c.ok != (err == nil) || err != nil && !errors.Is(err, installer.ErrRefused) {
			t.Errorf("%s: %v; want accepted = %v", name, err, c.ok)
		}
	}
}
