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
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// documents makes an index with one manifest.
func documents(t *testing.T) (index, manifest admission.Document) {
	t.Helper()
	encode := func(mediaType string, value any) admission.Document {
		content, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return admission.Document{Descriptor: artifact.Describe(mediaType, content), Content: content}
	}
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: artifact.Describe(ocispec.MediaTypeImageConfig, []byte("{}"))}
	m.SchemaVersion = 2
	manifest = encode(ocispec.MediaTypeImageManifest, m)
	i := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{manifest.Descriptor}}
	i.SchemaVersion = 2
	return encode(ocispec.MediaTypeImageIndex, i), manifest
}

// admit goes through an evaluation.
func admit(t *testing.T, r admission.Requirements, chain admission.Chain, about digest.Digest, found ...trust.Evidence) error {
	t.Helper()
	evaluation, err := r.Evaluate(version.Version{}, chain)
	if err != nil {
		return err
	}
	for _, piece := range found {
		evaluation.Add(t.Context(), about, piece)
	}
	_, err = evaluation.Decide(time.Now())
	return err
}

// TestZeroValues holds that nothing that was not made is admitted.
func TestZeroValues(t *testing.T) {
	t.Parallel()
	index, manifest := documents(t)
	chain, err := admission.NewChain(&index, manifest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&admission.Evaluation{}).Decide(time.Now()); !errors.Is(err, admission.ErrRefused) {
		t.Errorf("zero evaluation: %v", err)
	}
	if err := (admission.Admission{}).Check(); !errors.Is(err, admission.ErrRefused) {
		t.Errorf("zero admission: %v", err)
	}
	if err := admit(t, admission.Requirements{}, chain, ""); !errors.Is(err, admission.ErrRefused) {
		t.Errorf("zero requirements: %v", err)
	}
	nobody := admission.Requirements{Signers: []trust.Requirement{{}}}
	for name, found := range map[string][]trust.Evidence{"no evidence": nil, "zero evidence": {{}}} {
		if err := admit(t, nobody, chain, index.Descriptor.Digest, found...); !errors.Is(err, admission.ErrRefused) {
			t.Errorf("zero signer, %s: %v", name, err)
		}
	}
	if err := admit(t, nobody, admission.Chain{}, ""); !errors.Is(err, admission.ErrRefused) {
		t.Errorf("zero chain: %v", err)
	}
	if _, err := admission.Unsafe(version.Version{}, admission.Chain{}); !errors.Is(err, admission.ErrRefused) {
		t.Errorf("zero chain, unsafe: %v", err)
	}
}

// TestChain holds that only what belongs together is bound.
func TestChain(t *testing.T) {
	t.Parallel()
	index, manifest := documents(t)
	altered := manifest
	altered.Content = append([]byte(" "), manifest.Content...)
	if _, err := admission.NewChain(&index, altered); !errors.Is(err, admission.ErrBroken) {
		t.Errorf("altered manifest: %v", err)
	}
	foreign := manifest
	foreign.Content = append([]byte(" "), manifest.Content...)
	foreign.Descriptor = artifact.Describe(ocispec.MediaTypeImageManifest, foreign.Content)
	if _, err := admission.NewChain(&index, foreign); !errors.Is(err, admission.ErrBroken) {
		t.Errorf("manifest of another index: %v", err)
	}
	if _, err := admission.NewChain(&manifest, manifest); err == nil {
		t.Error("a manifest passes for an index")
	}
	chain, err := admission.NewChain(&index, manifest)
	if err != nil || len(chain.Subjects()) != 2 || chain.Index() != index.Descriptor.Digest {
		t.Errorf("%+v, %v", chain.Subjects(), err)
	}
	if chain.Contains(ocispec.Descriptor{Digest: index.Descriptor.Digest, Size: 1}) {
		t.Error("the chain contains what it does not name")
	}
}
