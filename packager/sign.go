package packager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/packager/internal/signer"
)

// SignOptions change what [Sign] and [Attest] do.
type SignOptions struct {
	// Report is told of every step.
	Report func(Event)
}

// Signed says what was signed.
type Signed struct {
	Repository string        `json:"repository"`
	Digest     digest.Digest `json:"digest"`
	// Manifests are the digests that carry the signature: the index and every
	// platform's manifest, or the single manifest that was published.
	Manifests []digest.Digest `json:"manifests"`
	// Predicates are the types that were attested; empty for a signature.
	Predicates []string `json:"predicates,omitempty"`
	// Present counts what the same key had signed before and was left alone.
	Present int `json:"present"`
	// Outcomes says what became of each kind.
	Outcomes []Outcome `json:"outcomes"`
	// Bundles are the attestations, in the order in which they were made.
	Bundles []SignedBundle `json:"-"`
}

// SignedBundle is an attestation as it hangs off the digests that it is about: a
// sigstore bundle, version 0.3.
type SignedBundle struct {
	PredicateType string
	Content       []byte
}

// Outcome counts manifests.
type Outcome struct {
	// What is [Event.Signed].
	What string `json:"what"`
	// New are those that have a new signature or attestation, Present those that
	// had it by the same key.
	New     int `json:"new"`
	Present int `json:"present"`
}

// count notes what became of one.
func (p *signaturePusher) count(what string, isNew bool) {
	i := slices.IndexFunc(p.outcomes, func(o Outcome) bool { return o.What == what })
	if i < 0 {
		i = len(p.outcomes)
		p.outcomes = append(p.outcomes, Outcome{What: what})
	}
	if isNew {
		p.outcomes[i].New++
	} else {
		p.outcomes[i].Present++
	}
}

// Sign signs the index that the tag or digest resolves to, and every platform's
// manifest in it, or a single manifest. Each signature is published in both forms that verifiers look
// for: under the tag sha256-….sig, and as a sigstore bundle among the
// manifest's referrers. What the same key signed before is not signed again.
func Sign(ctx context.Context, repo Repository, reference string, s *Signer, opts SignOptions) (*Signed, error) {
	t, err := readTree(ctx, repo, reference)
	if err != nil {
		return nil, err
	}
	p := signaturePusher{repo: repo, signer: s, report: reporter(opts.Report)}
	return p.sign(ctx, t.subjects())
}

// signaturePusher signs and publishes.
type signaturePusher struct {
	repo    Repository
	signer  *Signer
	report  func(Event)
	present int
	// outcomes are those of all that was signed.
	outcomes []Outcome
}

// statement is a predicate and what it is about.
type statement struct {
	predicateType string
	predicate     []byte
	subjects      []ocispec.Descriptor
}

// sign signs every subject by itself.
func (p *signaturePusher) sign(ctx context.Context, subjects []ocispec.Descriptor) (*Signed, error) {
	for _, subject := range subjects {
		signed, err := p.signer.s.SignImage(ctx, p.repo.Name(), subject.Digest)
		if err != nil {
			return nil, fmt.Errorf("signing %s: %w", subject.Digest, err)
		}
		if err := p.publish(ctx, subject, artifact.SignatureTag(subject.Digest), signed, "signature"); err != nil {
			return nil, fmt.Errorf("publishing the signature of %s: %w", subject.Digest, err)
		}
	}
	return p.done(subjects, nil), nil
}

// attest signs each statement once and hangs it off all its subjects.
func (p *signaturePusher) attest(ctx context.Context, statements []statement) (*Signed, error) {
	var types []string
	var subjects []ocispec.Descriptor
	var bundles []SignedBundle
	// A registry lists documents in any order; what is said of them has one.
	byType := func(a, b statement) int { return strings.Compare(a.predicateType, b.predicateType) }
	for _, st := range slices.SortedStableFunc(slices.Values(statements), byType) {
		named := make([]signer.Subject, len(st.subjects))
		for i, s := range st.subjects {
			named[i] = signer.Subject{Name: p.repo.Name(), Digest: s.Digest}
		}
		signed, err := p.signer.s.Attest(ctx, named, st.predicateType, st.predicate)
		if err != nil {
			return nil, fmt.Errorf("attesting %s: %w", st.predicateType, err)
		}
		for _, s := range st.subjects {
			if err := p.publish(ctx, s, artifact.AttestationTag(s.Digest), signed, st.predicateType); err != nil {
				return nil, fmt.Errorf("publishing the attestation %s of %s: %w", st.predicateType, s.Digest, err)
			}
		}
		if !slices.Contains(types, st.predicateType) {
			types = append(types, st.predicateType)
		}
		subjects = append(subjects, st.subjects...)
		bundles = append(bundles, SignedBundle{st.predicateType, signed.Bundle})
	}
	out := p.done(subjects, types)
	out.Bundles = bundles
	return out, nil
}

func (p *signaturePusher) done(subjects []ocispec.Descriptor, types []string) *Signed {
	out := &Signed{Repository: p.repo.Name(), Predicates: types, Present: p.present, Outcomes: slices.Clone(p.outcomes)}
	for _, s := range subjects {
		if !slices.Contains(out.Manifests, s.Digest) {
			out.Manifests = append(out.Manifests, s.Digest)
		}
		if artifact.IsIndex(s.MediaType) {
			out.Digest = s.Digest
		}
	}
	if out.Digest == "" && len(out.Manifests) == 1 {
		out.Digest = out.Manifests[0] // a single manifest
	}
	return out
}

// publish puts one signature where each kind of verifier looks: cosign 2 under
// the tag. what is [Event.Signed].
func (p *signaturePusher) publish(ctx context.Context, subject ocispec.Descriptor, tag string, s signer.Signed, what string) error {
	key, err := newOwnSignatures(p.signer.s.PublicKey())
	if err != nil {
		return err
	}
	before := p.present
	if err := p.addLegacy(ctx, tag, s, key); err != nil {
		return err
	}
	if err := p.addBundle(ctx, subject, s, key); err != nil {
		return err
	}
	event := Event{Kind: EventSigned, Subject: subject.Digest.String(), Signed: what}
	p.count(what, p.present == before)
	if p.present > before {
		event.Kind = EventSignedBefore
	}
	p.report(event)
	return nil
}

// legacyAttempts bounds how often a signature tag is written again because
// another signer wrote it at the same time.
const legacyAttempts = 5

// addLegacy appends a layer to the image under the tag.
func (p *signaturePusher) addLegacy(ctx context.Context, tag string, s signer.Signed, key ownSignatures) error {
	layer := blob{artifact.Describe(s.Legacy.MediaType, s.Legacy.Payload), s.Legacy.Payload}
	layer.desc.Annotations = s.Legacy.Annotations
	for attempt := range legacyAttempts {
		layers, err := p.legacyLayers(ctx, tag)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(layers, func(d ocispec.Descriptor) bool { return sameLayer(d, layer.desc) }) {
			if attempt == 0 {
				p.present++ // by a key whose signatures of the same are the same
			}
			return nil
		}
		for _, d := range layers {
			same, err := p.sameLegacy(ctx, d, s, key)
			if err != nil {
				return err
			}
			if same {
				p.present++
				return nil
			}
		}
		if err := pushBlob(ctx, p.repo, blob{plain(layer.desc), layer.content}, func(Event) {}); err != nil {
			return err
		}
		if err := p.writeLegacy(ctx, tag, append(layers, layer.desc)); err != nil {
			return err
		}
	}
	return fmt.Errorf("tag %s: other signers write it all the time", tag)
}

func sameLayer(a, b ocispec.Descriptor) bool {
	return a.Digest == b.Digest && a.Annotations[artifact.AnnotationSignature] == b.Annotations[artifact.AnnotationSignature]
}

// legacyLayers returns the layers under a signature tag; none if there is no
// such tag.
func (p *signaturePusher) legacyLayers(ctx context.Context, tag string) ([]ocispec.Descriptor, error) {
	desc, err := p.repo.Resolve(ctx, tag)
	if errors.Is(err, ociregistry.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	content, err := p.repo.FetchAll(ctx, desc, artifact.ManifestLimit)
	if err != nil {
		return nil, err
	}
	m, err := artifact.DecodeManifest(desc.MediaType, content)
	if err != nil {
		return nil, fmt.Errorf("tag %s: %w", tag, err)
	}
	return m.Layers, nil
}

func (p *signaturePusher) sameLegacy(ctx context.Context, d ocispec.Descriptor, s signer.Signed, key ownSignatures) (bool, error) {
	if !key.known() || d.MediaType != s.Legacy.MediaType {
		return false, nil
	}
	if d.Size > 2*int64(len(s.Legacy.Payload))+artifact.ManifestLimit {
		return false, nil // far larger than the same claim would be
	}
	payload, err := p.repo.FetchAll(ctx, d, d.Size)
	if err != nil {
		return false, err
	}
	return key.sameLayer(payload, d.Annotations, s.Legacy), nil
}

// writeLegacy writes the image that carries the layers. Its config is what
// cosign writes, so that registries which look into configs accept it.
func (p *signaturePusher) writeLegacy(ctx context.Context, tag string, layers []ocispec.Descriptor) error {
	image := ocispec.Image{RootFS: ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{}}}
	for _, l := range layers {
		image.RootFS.DiffIDs = append(image.RootFS.DiffIDs, l.Digest)
	}
	raw, err := json.Marshal(image)
	if err != nil {
		return err
	}
	config := blob{artifact.Describe(ocispec.MediaTypeImageConfig, raw), raw}
	if err := pushBlob(ctx, p.repo, config, func(Event) {}); err != nil {
		return err
	}
	desc, content, err := artifact.EncodeManifest(artifact.ManifestInput{Config: config.desc, Layers: layers})
	if err != nil {
		return err
	}
	return p.repo.PushManifest(ctx, desc, content, tag)
}

// addBundle hangs a sigstore bundle off the subject.
func (p *signaturePusher) addBundle(ctx context.Context, subject ocispec.Descriptor, s signer.Signed, key ownSignatures) error {
	if key.known() {
		same, err := p.hasBundle(ctx, subject, s, key)
		if err != nil || same {
			return err
		}
	}
	r := referrer{subject: subject, document: blob{artifact.Describe(artifact.MediaTypeBundle, s.Bundle), s.Bundle}}
	var err error
	r.manifest.desc, r.manifest.content, err = artifact.EncodeReferrer(artifact.ReferrerInput{
		Subject: subject, ArtifactType: artifact.MediaTypeBundle, Layer: r.document.desc,
		Annotations: map[string]string{
			"dev.sigstore.bundle.content":       "dsse-envelope",
			"dev.sigstore.bundle.predicateType": s.PredicateType,
		},
	})
	if err != nil {
		return err
	}
	return pushReferrer(ctx, p.repo, r, func(Event) {})
}

// hasBundle looks for a bundle with the same statement, signed by the same key.
func (p *signaturePusher) hasBundle(ctx context.Context, subject ocispec.Descriptor, s signer.Signed, key ownSignatures) (bool, error) {
	referrers, err := p.repo.Referrers(ctx, subject)
	if err != nil {
		return false, err
	}
	for _, desc := range referrers {
		content, err := p.repo.FetchAll(ctx, desc, artifact.ManifestLimit)
		if err != nil {
			return false, err
		}
		m, err := artifact.DecodeManifest(desc.MediaType, content)
		if err != nil || len(m.Layers) != 1 || m.Layers[0].MediaType != artifact.MediaTypeBundle {
			continue
		}
		if m.Layers[0].Size > 2*int64(len(s.Bundle))+artifact.ManifestLimit {
			continue // far larger than the same statement would be
		}
		bundle, err := p.repo.FetchAll(ctx, m.Layers[0], m.Layers[0].Size)
		if err != nil {
			return false, err
		}
		if key.sameBundle(bundle, s.Bundle) {
			return true, nil
		}
	}
	return false, nil
}
