package admission_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// twoRefs is a sample that two runs of one workflow signed, at the refs v1.2.3
// and v1.2.4: its chain, and what vouches for it.
func twoRefs(tb testing.TB, lab *trusttest.LabSamples, name string) (chain admission.Chain, about digest.Digest, found []trust.Evidence) {
	tb.Helper()
	s := lab.Sample(tb, name)
	raw := lab.Content(tb, s.Index)
	var index ocispec.Index
	if err := json.Unmarshal(raw, &index); err != nil {
		tb.Fatal(err)
	}
	top := admission.Document{Descriptor: ocispec.Descriptor{MediaType: index.MediaType, Digest: s.Index, Size: int64(len(raw))}, Content: raw}
	entry := index.Manifests[0]
	chain, err := admission.NewChain(&top, admission.Document{Descriptor: entry, Content: lab.Content(tb, entry.Digest)})
	if err != nil {
		tb.Fatal(err)
	}
	for _, l := range lab.Evidence(tb, s.Index) {
		f, ok := trust.FormatOf(l.MediaType)
		if !ok {
			tb.Fatalf("no evidence in %s", l.MediaType)
		}
		found = append(found, trust.Evidence{Format: f, Payload: l.Payload, Annotations: l.Annotations})
	}
	return chain, s.Index, found
}

// TestThresholdCountsSigners: a threshold counts required signers, not the
// subjects that one pattern happens to match: otherwise one workflow, run
// twice, would outvote the second key.
func TestThresholdCountsSigners(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	roots, err := trust.LoadTrustedRoot(lab.TrustedRoot())
	if err != nil {
		t.Fatal(err)
	}
	identity := func(id trust.Identity) trust.Requirement {
		id.Issuer = trusttest.LabIssuer
		r, err := trust.RequireIdentity(id, trust.IdentityOptions{Roots: roots, UnsafeNoSCT: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	key, err := trust.RequireKey(trusttest.NewKey(t).PublicPEM(t), trust.KeyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const workflow = "https://github.com/lab-org/lab-plugin/.github/workflows/release.yml@refs/tags/v1.2."
	release := identity(trust.Identity{SubjectPattern: `^https://github\.com/lab-org/lab-plugin/\.github/workflows/release\.yml@refs/tags/v.+$`})
	third, fourth := identity(trust.Identity{Subject: workflow + "3"}), identity(trust.Identity{Subject: workflow + "4"})
	for name, c := range map[string]struct {
		signers   []trust.Requirement
		threshold int
		ok        bool
	}{
		"one pattern":                       {[]trust.Requirement{release}, 1, true},
		"one pattern and a silent key":      {[]trust.Requirement{release, key}, 2, false},
		"the pattern again is no other":     {[]trust.Requirement{release, release, key}, 3, false},
		"two exact subjects":                {[]trust.Requirement{third, fourth}, 2, true},
		"the same subject twice":            {[]trust.Requirement{third, third}, 2, false},
		"pattern first, and an exact one":   {[]trust.Requirement{release, fourth}, 2, true},
		"pattern first, the other exact":    {[]trust.Requirement{release, third}, 2, true},
		"exact first, then the pattern":     {[]trust.Requirement{third, release}, 2, true},
		"three wanted of two that there is": {[]trust.Requirement{release, third, fourth}, 3, false},
	} {
		chain, about, found := twoRefs(t, lab, "ours-keyless-two-refs")
		h, err := admission.Requirements{Signers: c.signers, Threshold: c.threshold}.Evaluate(version.Version{}, chain)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := h.Decide(time.Time{}); !errors.Is(err, admission.ErrUnsigned) {
			t.Errorf("%s: before any evidence: %v", name, err)
		}
		for _, piece := range found {
			h.Add(t.Context(), about, piece)
		}
		a, err := h.Decide(time.Time{})
		if c.ok != (err == nil) || (err != nil && !errors.Is(err, admission.ErrRefused)) || c.ok != (a.Check() == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if c.ok && len(a.Verified()) != c.threshold {
			t.Errorf("%s: %d pieces decided, not %d", name, len(a.Verified()), c.threshold)
		}
	}
	if err := (admission.Requirements{Signers: []trust.Requirement{release}, Threshold: 2}).Check(); err == nil {
		t.Error("a threshold of two with one signer")
	}
}
