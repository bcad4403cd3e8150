package trust_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
)

// signedBy wants one signature and nothing else.
func signedBy(r trust.Requirement) admission.Requirements {
	return admission.Requirements{Signers: []trust.Requirement{r}}
}

// attestedBy wants one attestation of a type and no signature.
func attestedBy(r trust.Requirement, predicateType string) admission.Requirements {
	return admission.Requirements{
		Signers: []trust.Requirement{r}, AttestationsSuffice: true,
		Attestations: []admission.Attestation{{Types: []string{predicateType}}},
	}
}

// chainOf is what is to be admitted: an index with the first of its manifests,
// or a manifest alone.
func chainOf(tb testing.TB, about digest.Digest, content func(digest.Digest) []byte) admission.Chain {
	tb.Helper()
	document := func(d digest.Digest) (admission.Document, ocispec.Index) {
		raw := content(d)
		var index ocispec.Index
		if err := json.Unmarshal(raw, &index); err != nil {
			tb.Fatal(err)
		}
		desc := ocispec.Descriptor{MediaType: index.MediaType, Digest: d, Size: int64(len(raw))}
		return admission.Document{Descriptor: desc, Content: raw}, index
	}
	top, index := document(about)
	var chain admission.Chain
	var err error
	if len(index.Manifests) == 0 {
		chain, err = admission.NewChain(nil, top)
	} else {
		manifest, _ := document(index.Manifests[0].Digest)
		chain, err = admission.NewChain(&top, manifest)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return chain
}

// evaluate judges as an installation does, and returns what decided.
func evaluate(tb testing.TB, asked admission.Requirements, chain admission.Chain, about digest.Digest, found []trust.Evidence) (trust.Verified, error) {
	tb.Helper()
	evaluation, err := asked.Evaluate(version.Version{}, chain)
	if err != nil {
		tb.Fatal(err)
	}
	for _, piece := range found {
		evaluation.Add(tb.Context(), about, piece)
	}
	admitted, err := evaluation.Decide(time.Time{})
	if err != nil {
		return trust.Verified{}, err
	}
	if all := admitted.Verified(); len(all) != 1 {
		tb.Fatalf("%d pieces of evidence decided", len(all))
	}
	return admitted.Verified()[0], nil
}
