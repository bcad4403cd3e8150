package packager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// publish publishes everything that was made.
func (e *evidence) publish(ctx context.Context) (*Signed, error) {
	for _, s := range e.subjects {
		if err := e.publishAbout(ctx, s); err != nil {
			return nil, fmt.Errorf("publishing evidence about %s: %w", s.subject.Digest, err)
		}
	}
	return e.result(), nil
}

// target is where signatures go.
func (e *evidence) target() Repository {
	if e.opts.Signatures != nil {
		return e.opts.Signatures
	}
	return e.repo
}

// publishAbout publishes what there is about one manifest: first what is found
// among its referrers, then the tags.
func (e *evidence) publishAbout(ctx context.Context, s *subjectEvidence) error {
	var own ownSignatures
	if len(s.pieces) > 0 {
		var err error
		if own, err = newOwnSignatures(e.signer.s); err != nil {
			return err
		}
	}
	forms := make([]forms, len(s.pieces))
	documents := s.documents
	if e.opts.Signatures != nil {
		if err := attach(ctx, e.repo, s.subject, documents, e.report); err != nil {
			return err
		}
		documents = nil
	}
	if err := e.publishBundles(ctx, s, documents, own, forms); err != nil {
		return err
	}
	if e.opts.Format.tags() {
		if err := e.publishTags(ctx, s, own, forms); err != nil {
			return err
		}
	}
	for i, p := range s.pieces {
		if err := e.settle(s.subject, p, forms[i]); err != nil {
			return err
		}
	}
	return nil
}

// forms is what became of a piece in each form.
type forms struct{ bundle, tag state }

// state of a piece in one form. Its zero value is not published.
type state struct {
	there, isNew bool
	// refused is why the registry did not take it: a tag that does not move.
	refused error
}

// settle decides whether a piece is published well enough, and notes it.
func (e *evidence) settle(subject ocispec.Descriptor, p piece, f forms) error {
	refused := errors.Join(f.bundle.refused, f.tag.refused)
	switch {
	case refused != nil && (e.opts.Format == FormatBundle || e.opts.Format == FormatTag || !f.bundle.there && !f.tag.there):
		return fmt.Errorf("%s: %w", p.what, refused)
	case refused != nil:
		e.warn(dist.Warning{Subject: p.tag, Message: fmt.Sprintf("%s of %s is published in one form only: %v", p.what, subject.Digest, refused)})
	}
	isNew := f.bundle.isNew || f.tag.isNew
	e.count(p.what, isNew)
	event := Event{Kind: EventSigned, Subject: subject.Digest.String(), Signed: p.what}
	if !isNew {
		event.Kind = EventSignedBefore
	}
	e.report(event)
	return nil
}

func (e *evidence) warn(w dist.Warning) {
	if !slices.Contains(e.warnings, w) {
		e.warnings = append(e.warnings, w)
	}
}

// publishBundles attaches documents and bundles, all with one write. A registry
// that lists referrers under a tag may refuse to write that a second time.
func (e *evidence) publishBundles(ctx context.Context, s *subjectEvidence, documents []referrer, own ownSignatures, forms []forms) error {
	to := e.target()
	bundles, err := e.missingBundles(ctx, s, own, forms)
	if err != nil {
		return err
	}
	err = attach(ctx, to, s.subject, slices.Concat(documents, bundles), e.report)
	if err != nil && !errors.Is(err, ociregistry.ErrImmutable) {
		return err
	}
	if err != nil && len(documents) > 0 {
		// Without the bundles, the documents may be listed already.
		if again := attach(ctx, to, s.subject, documents, e.report); again != nil {
			return again
		}
	}
	for i := range s.pieces {
		switch b := &forms[i].bundle; {
		case b.there || !e.opts.Format.bundles():
		case err != nil:
			b.refused = err
		default:
			b.there, b.isNew = true, true
		}
	}
	return nil
}

// missingBundles are those to attach. It marks the forms of those that are there.
func (e *evidence) missingBundles(ctx context.Context, s *subjectEvidence, own ownSignatures, forms []forms) ([]referrer, error) {
	if !e.opts.Format.bundles() || len(s.pieces) == 0 {
		return nil, nil
	}
	have, err := bundlesOf(ctx, e.target(), s.subject, s.pieces)
	if err != nil {
		return nil, err
	}
	var missing []referrer
	for i, p := range s.pieces {
		if slices.ContainsFunc(have, func(b []byte) bool { return own.sameBundle(b, p.signed.Bundle) }) {
			forms[i].bundle.there = true
			continue
		}
		r, err := bundleReferrer(s.subject, p)
		if err != nil {
			return nil, err
		}
		missing = append(missing, r)
	}
	return missing, nil
}

func bundleReferrer(subject ocispec.Descriptor, p piece) (referrer, error) {
	bundle := blob{artifact.Describe(artifact.MediaTypeBundle, p.signed.Bundle), p.signed.Bundle}
	desc, content, err := artifact.EncodeReferrer(artifact.ReferrerInput{
		Subject: subject, ArtifactType: artifact.MediaTypeBundle, Layer: bundle.desc,
		Annotations: map[string]string{
			"dev.sigstore.bundle.content":       "dsse-envelope",
			"dev.sigstore.bundle.predicateType": p.signed.PredicateType,
		},
	})
	emptyDesc, empty := artifact.EmptyConfig()
	return referrer{manifest: blob{desc, content}, parts: []part{bundle.part(), blob{emptyDesc, empty}.part()}, bundle: true}, err
}

// bundlesOf returns the bundles among the referrers of a manifest that may hold the
// same as one of the pieces.
func bundlesOf(ctx context.Context, from Content, subject ocispec.Descriptor, pieces []piece) ([][]byte, error) {
	largest := 0
	for _, p := range pieces {
		largest = max(largest, len(p.signed.Bundle))
	}
	referrers, err := from.Referrers(ctx, subject)
	if err != nil {
		return nil, err
	}
	var found [][]byte
	for _, desc := range referrers {
		content, err := from.FetchAll(ctx, desc, artifact.ManifestLimit)
		if err != nil {
			return nil, err
		}
		m, err := artifact.DecodeManifest(desc.MediaType, content)
		if err != nil || len(m.Layers) != 1 || m.Layers[0].MediaType != artifact.MediaTypeBundle {
			continue
		}
		if m.Layers[0].Size > 2*int64(largest)+artifact.ManifestLimit {
			continue // far larger than the same statement would be
		}
		bundle, err := from.FetchAll(ctx, m.Layers[0], m.Layers[0].Size)
		if err != nil {
			return nil, err
		}
		found = append(found, bundle)
	}
	return found, nil
}

// publishTags writes the images under the tags of cosign 2, each once for all its
// pieces.
func (e *evidence) publishTags(ctx context.Context, s *subjectEvidence, own ownSignatures, forms []forms) error {
	for _, tag := range []string{artifact.SignatureTag(s.subject.Digest), artifact.AttestationTag(s.subject.Digest)} {
		var pieces []piece
		var states []*state
		for i, p := range s.pieces {
			if p.tag == tag {
				pieces, states = append(pieces, p), append(states, &forms[i].tag)
			}
		}
		if len(pieces) == 0 {
			continue
		}
		if err := e.addLayers(ctx, tag, pieces, states, own); err != nil {
			return fmt.Errorf("tag %s: %w", tag, err)
		}
	}
	return nil
}

// tagAttempts bounds how often a signature tag is written again because another
// signer wrote it at the same time.
const tagAttempts = 5

// addLayers appends layers to the image under a tag, and looks afterwards whether
// they are all there.
func (e *evidence) addLayers(ctx context.Context, tag string, pieces []piece, states []*state, own ownSignatures) error {
	for range tagAttempts {
		have, err := layersUnder(ctx, e.target(), tag)
		if err != nil {
			return err
		}
		var missing []int
		for i, p := range pieces {
			same, err := own.among(ctx, e.target(), have, p.signed.Legacy)
			switch {
			case err != nil:
				return err
			case same:
				states[i].there = true
			default:
				missing = append(missing, i)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		err = e.writeLayers(ctx, tag, have, pieces, missing)
		if err != nil && !errors.Is(err, ociregistry.ErrImmutable) {
			return err
		}
		for _, i := range missing {
			states[i].isNew, states[i].refused = err == nil, err
		}
		if err != nil {
			return nil //nolint:nilerr // whether that matters is decided for each piece
		}
	}
	return fmt.Errorf("%w: other signers write it all the time", ociregistry.ErrUnavailable)
}

// writeLayers writes the image that carries the layers.
func (e *evidence) writeLayers(ctx context.Context, tag string, have []ocispec.Descriptor, pieces []piece, missing []int) error {
	layers := slices.Clone(have)
	for _, i := range missing {
		l := pieces[i].signed.Legacy
		desc := artifact.Describe(l.MediaType, l.Payload)
		if err := pushBlob(ctx, e.target(), blob{desc, l.Payload}, func(Event) {}); err != nil {
			return err
		}
		desc.Annotations = l.Annotations
		layers = append(layers, desc)
	}
	config, manifest, err := artifact.EncodeSignatures(layers)
	if err != nil {
		return err
	}
	if err := pushBlob(ctx, e.target(), blob{config.Descriptor, config.Content}, func(Event) {}); err != nil {
		return err
	}
	return e.target().PushManifest(ctx, manifest.Descriptor, manifest.Content, tag)
}

// layersUnder returns the layers under a signature tag; none if there is no such
// tag.
func layersUnder(ctx context.Context, from Repository, tag string) ([]ocispec.Descriptor, error) {
	desc, err := from.Resolve(ctx, tag)
	if errors.Is(err, ociregistry.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	content, err := from.FetchAll(ctx, desc, artifact.ManifestLimit)
	if err != nil {
		return nil, err
	}
	m, err := artifact.DecodeManifest(desc.MediaType, content)
	return m.Layers, err
}
