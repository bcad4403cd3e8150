package packager

import (
	"context"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// The predicate types of bills of materials, as cosign writes them, and that of
// SLSA provenance v1, https://slsa.dev/spec/v1.0/provenance.
const (
	PredicateSPDX       = artifact.PredicateSPDX
	PredicateCycloneDX  = artifact.PredicateCycloneDX
	PredicateProvenance = artifact.PredicateProvenance
)

// Predicate is something to be attested about a whole release.
type Predicate struct {
	// Type is a URI, Content JSON.
	Type    string
	Content []byte
}

// Attest signs attestations about the index that the tag or digest stands for:
// the bills of materials that hang off the index and off each platform's
// manifest, each about the manifest that it hangs off, and the given
// predicates, about all of them. Each attestation is published in both forms,
// under the tag sha256-….att and as a sigstore bundle among the referrers.
//
// Whoever may push to the repository can hang a document off a manifest, so
// attest right after pushing, or let [Release] do it: that signs the documents
// that it made itself.
func Attest(ctx context.Context, repo Repository, reference string, s *Signer, predicates []Predicate, opts SignOptions) (*Signed, error) {
	t, err := readTree(ctx, repo, reference)
	if err != nil {
		return nil, err
	}
	subjects := t.subjects()
	var statements []statement
	for _, subject := range subjects {
		found, err := attachedSBOMs(ctx, repo, subject)
		if err != nil {
			return nil, err
		}
		statements = append(statements, found...)
	}
	statements = append(statements, aboutAll(predicates, subjects)...)
	e := newEvidence(repo, s, opts)
	if err := e.attest(ctx, statements); err != nil {
		return nil, err
	}
	return e.publish(ctx)
}

func aboutAll(predicates []Predicate, subjects []ocispec.Descriptor) []statement {
	var all []statement
	for _, p := range predicates {
		all = append(all, statement{predicateType: p.Type, predicate: p.Content, subjects: subjects})
	}
	return all
}

// sbomLimit bounds a bill of materials, in bytes.
const sbomLimit = 64 << 20

// attachedSBOMs returns the bills of materials that hang off a manifest.
func attachedSBOMs(ctx context.Context, from Content, subject ocispec.Descriptor) ([]statement, error) {
	referrers, err := from.Referrers(ctx, subject)
	if err != nil {
		return nil, err
	}
	var found []statement
	for _, desc := range referrers {
		content, err := from.FetchAll(ctx, desc, artifact.ManifestLimit)
		if err != nil {
			return nil, err
		}
		m, err := artifact.DecodeManifest(desc.MediaType, content)
		if err != nil {
			return nil, fmt.Errorf("referrer %s: %w", desc.Digest, err)
		}
		for _, l := range m.Layers {
			predicateType := artifact.PredicateOf(l.MediaType)
			if predicateType == "" {
				continue
			}
			document, err := from.FetchAll(ctx, l, sbomLimit)
			if err != nil {
				return nil, err
			}
			found = append(found, statement{predicateType, document, []ocispec.Descriptor{subject}})
		}
	}
	return found, nil
}
