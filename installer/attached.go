package installer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/evidence"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

const (
	// maxWrapping bounds, in bytes, a manifest around evidence, which nothing signs,
	// and its config.
	maxWrapping = 64 << 10
	// maxLeftOut bounds how much of what was left out is named.
	maxLeftOut = 1000
	// mergeAttempts bounds how often signatures at the destination are added to,
	// because others write them at the same time.
	mergeAttempts = 5
)

// LeftOut is something about a mirrored manifest that was not copied.
type LeftOut struct {
	// Subject is the manifest, Digest what was left out, "" for what could not be
	// looked at.
	Subject digest.Digest `json:"subject"`
	Digest  digest.Digest `json:"digest,omitempty"`
	// Reason says why.
	Reason string `json:"reason"`
}

// attached is what was found about one manifest.
type attached struct {
	subject ocispec.Descriptor
	// tags are manifests under cosign 2's tags in which something counts.
	tags []tagged
	// referrers are manifests in which something counts, and which of their layers
	// do; others hold no evidence.
	referrers []place
	others    []place
	// documents are what attestations say.
	documents map[document]bool
}

// document is what an attestation of a type says.
type document struct {
	predicateType string
	digest        digest.Digest
}

// tagged is a manifest under a tag, where it is, and the layers of it that count.
type tagged struct {
	ocispec.Descriptor
	tag    string
	from   Source
	layers []ocispec.Descriptor
}

// place is a manifest, where it is, and which of its layers count.
type place struct {
	ocispec.Descriptor
	from   Source
	layers map[digest.Digest]bool
}

// attached copies what vouches for a manifest, and the documents about it that
// something vouches for.
func (m *mirror) attached(ctx context.Context, subject ocispec.Descriptor) error {
	var places []Source
	for _, src := range m.places {
		places = append(places, anew(src))
	}
	about, err := m.find(ctx, places, subject)
	if err != nil {
		return err
	}
	var signed []attached
	for _, other := range about.others {
		vouched, its, err := m.vouched(ctx, places, about, other)
		if err != nil {
			return fmt.Errorf("referrer %s: %w", other.Digest, err)
		}
		if !vouched {
			m.leave(subject.Digest, other.Digest, "no trusted signature covers it")
			continue
		}
		about.referrers = append(about.referrers, other)
		signed = append(signed, its)
	}
	if err := m.copyAttached(ctx, about); err != nil {
		return err
	}
	for _, its := range signed {
		if err := m.copyAttached(ctx, its); err != nil {
			return fmt.Errorf("referrer %s: %w", its.subject.Digest, err)
		}
	}
	return nil
}

// find looks for evidence about a manifest in all places.
func (m *mirror) find(ctx context.Context, places []Source, subject ocispec.Descriptor) (attached, error) {
	about := attached{subject: subject, documents: map[document]bool{}}
	for _, from := range places {
		search := evidence.Search{Other: func(desc ocispec.Descriptor) {
			about.others = append(about.others, place{Descriptor: desc, from: from})
		}}
		err := search.Discover(ctx, from, subject, func(found evidence.Found) bool {
			verified, ok := m.verify(ctx, subject.Digest, found.Evidence)
			if !ok {
				m.leave(subject.Digest, found.Layer.Digest, found.Origin+": not by a required signer")
				return ctx.Err() == nil
			}
			about.add(found, from)
			about.documents[document{verified.PredicateType(), verified.Document()}] = true
			return ctx.Err() == nil
		})
		if err := m.tolerate(ctx, subject.Digest, err); err != nil {
			return about, err
		}
	}
	return about, nil
}

func (a *attached) add(found evidence.Found, from Source) {
	if found.Tag != "" {
		at := slices.IndexFunc(a.tags, func(t tagged) bool { return t.tag == found.Tag && t.Digest == found.Manifest.Digest })
		if at < 0 {
			at = len(a.tags)
			a.tags = append(a.tags, tagged{found.Manifest, found.Tag, from, nil})
		}
		a.tags[at].layers = append(a.tags[at].layers, found.Layer)
		return
	}
	at := slices.IndexFunc(a.referrers, func(p place) bool { return p.Digest == found.Manifest.Digest })
	if at < 0 {
		at = len(a.referrers)
		a.referrers = append(a.referrers, place{found.Manifest, from, map[digest.Digest]bool{}})
	}
	a.referrers[at].layers[found.Layer.Digest] = true
}

// verify says whether evidence is by a required signer. Where the rule asks for
// none, all counts.
func (m *mirror) verify(ctx context.Context, subject digest.Digest, ev trust.Evidence) (trust.Verified, bool) {
	for _, signer := range m.rule.requirements.Signers {
		if verified, err := signer.Verify(ctx, subject, ev); err == nil {
			return verified, true
		}
	}
	return trust.Verified{}, m.rule.unsafe
}

// tolerate notes what was found and cannot be evidence; what could not be fetched
// stays an error.
func (m *mirror) tolerate(ctx context.Context, subject digest.Digest, err error) error {
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	failures := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		failures = joined.Unwrap()
	}
	for _, failure := range failures {
		hostile := slices.ContainsFunc([]error{ErrBadContent, ErrNotFound, artifact.ErrInvalid},
			func(kind error) bool { return errors.Is(failure, kind) })
		if !hostile {
			return failure
		}
		m.leave(subject, "", failure.Error())
	}
	return nil
}

func (m *mirror) leave(subject, what digest.Digest, reason string) {
	if len(m.done.LeftOut) < maxLeftOut {
		m.done.LeftOut = append(m.done.LeftOut, LeftOut{subject, what, reason})
	}
}

// vouched says whether something vouches for a referrer that is no evidence: an
// attestation about the same subject repeats it, or it is signed itself, by what
// is returned.
func (m *mirror) vouched(ctx context.Context, places []Source, about attached, other place) (bool, attached, error) {
	none := attached{subject: other.Descriptor}
	content, err := other.from.FetchAll(ctx, other.Descriptor, artifact.ManifestLimit)
	if err != nil {
		return false, none, m.tolerate(ctx, about.subject.Digest, err)
	}
	manifest, err := artifact.DecodeManifest(other.MediaType, content)
	if err != nil {
		return false, none, m.tolerate(ctx, about.subject.Digest, err)
	}
	repeated, err := m.repeated(ctx, about, other, manifest)
	if err != nil || repeated {
		return repeated, none, err
	}
	its, err := m.find(ctx, places, other.Descriptor)
	return len(its.tags) > 0 || len(its.referrers) > 0, its, err
}

// repeated says whether a referrer is a document that an attestation repeats.
func (m *mirror) repeated(ctx context.Context, about attached, other place, manifest ocispec.Manifest) (bool, error) {
	if len(manifest.Layers) != 1 || other.Size > maxWrapping || manifest.Config.Size > maxWrapping {
		return false, nil
	}
	layer := manifest.Layers[0]
	predicateType := artifact.PredicateOf(layer.MediaType)
	if predicateType == "" || layer.Size > trust.MaxPayload {
		return false, nil
	}
	if m.rule.unsafe {
		return true, nil
	}
	content, err := other.from.FetchAll(ctx, layer, trust.MaxPayload)
	if err != nil {
		return false, m.tolerate(ctx, about.subject.Digest, err)
	}
	says := trust.DocumentDigest(content)
	return says != "" && about.documents[document{predicateType, says}], nil
}

// copyAttached copies what was found to count about one manifest.
func (m *mirror) copyAttached(ctx context.Context, about attached) error {
	var manifests []ociregistry.Manifest
	for _, referrer := range about.referrers {
		content, err := m.wrapping(ctx, about.subject.Digest, referrer)
		if err != nil {
			return fmt.Errorf("referrer %s: %w", referrer.Digest, err)
		}
		if content != nil {
			manifests = append(manifests, ociregistry.Manifest{Descriptor: referrer.Descriptor, Content: content})
		}
	}
	if err := m.attach(ctx, about.subject, manifests); err != nil {
		return err
	}
	for _, t := range about.tags {
		if err := m.merge(ctx, t); err != nil {
			return fmt.Errorf("tag %s: %w", t.tag, err)
		}
	}
	return nil
}

// wrapping copies the blobs of a referrer and returns its content, nil where it
// has more in it than what counts.
func (m *mirror) wrapping(ctx context.Context, subject digest.Digest, referrer place) ([]byte, error) {
	content, err := referrer.from.FetchAll(ctx, referrer.Descriptor, artifact.ManifestLimit)
	if err != nil {
		return nil, err
	}
	manifest, err := artifact.DecodeManifest(referrer.MediaType, content)
	if err != nil {
		return nil, err
	}
	if referrer.layers != nil {
		more := slices.ContainsFunc(manifest.Layers, func(l ocispec.Descriptor) bool { return !referrer.layers[l.Digest] })
		if more || referrer.Size > maxWrapping || manifest.Config.Size > maxWrapping {
			m.leave(subject, referrer.Digest, "there is more in it than what is by a required signer")
			return nil, nil
		}
	}
	for _, blob := range append([]ocispec.Descriptor{manifest.Config}, manifest.Layers...) {
		if err := m.blob(ctx, referrer.from, blob); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// attach stores referrers: together where the destination can, since a list of
// them may be something that can be written once only.
func (m *mirror) attach(ctx context.Context, subject ocispec.Descriptor, manifests []ociregistry.Manifest) error {
	if len(manifests) == 0 {
		return nil
	}
	m.done.Manifests += len(manifests)
	to, ok := m.to.(interface {
		Attach(context.Context, ocispec.Descriptor, ...ociregistry.Manifest) error
	})
	if ok {
		return to.Attach(ctx, subject, manifests...)
	}
	for _, one := range manifests {
		if err := m.to.PushManifest(ctx, one.Descriptor, one.Content); err != nil {
			return err
		}
	}
	return nil
}

// merge sees to it that what counts under a tag of cosign 2 is there at the
// destination. What is there stays: it may be a signature of the place itself.
// Where nothing is, a manifest in which everything counts is copied as it is.
func (m *mirror) merge(ctx context.Context, t tagged) error {
	content, err := t.from.FetchAll(ctx, t.Descriptor, artifact.ManifestLimit)
	if err != nil {
		return err
	}
	manifest, err := artifact.DecodeManifest(t.MediaType, content)
	if err != nil {
		return err
	}
	asIs := len(manifest.Layers) == len(t.layers) && manifest.Config.Size <= maxWrapping
	for _, layer := range t.layers {
		if err := m.blob(ctx, t.from, layer); err != nil {
			return err
		}
	}
	for range mergeAttempts {
		there, err := m.layersThere(ctx, t.tag)
		if err != nil {
			return err
		}
		missing := slices.DeleteFunc(slices.Clone(t.layers), func(l ocispec.Descriptor) bool {
			return slices.ContainsFunc(there, func(t ocispec.Descriptor) bool { return sameLayer(l, t) })
		})
		if len(missing) == 0 {
			m.done.Manifests++
			return nil
		}
		if asIs && len(there) == 0 {
			if err = m.blob(ctx, t.from, manifest.Config); err == nil {
				err = m.to.PushManifest(ctx, t.Descriptor, content, t.tag)
			}
		} else {
			err = m.pushLayers(ctx, t.tag, append(there, missing...))
		}
		if errors.Is(err, ociregistry.ErrImmutable) {
			return fmt.Errorf("%w: it has other signatures there, and none can be added: %w", errOccupied, err)
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: others write it all the time", ErrUnavailable)
}

// sameLayer says whether two layers are the same evidence, with the same proofs.
func sameLayer(a, b ocispec.Descriptor) bool {
	return a.Digest == b.Digest && a.MediaType == b.MediaType && maps.Equal(a.Annotations, b.Annotations)
}

// layersThere are those under a tag at the destination.
func (m *mirror) layersThere(ctx context.Context, tag string) ([]ocispec.Descriptor, error) {
	desc, err := m.to.Resolve(ctx, tag)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	content, err := m.to.FetchAll(ctx, desc, artifact.ManifestLimit)
	if err != nil {
		return nil, err
	}
	manifest, err := artifact.DecodeManifest(desc.MediaType, content)
	if err != nil {
		return nil, fmt.Errorf("%w: what is there has no signatures to add to: %w", errOccupied, err)
	}
	return manifest.Layers, nil
}

func (m *mirror) pushLayers(ctx context.Context, tag string, layers []ocispec.Descriptor) error {
	config, manifest, err := artifact.EncodeSignatures(layers)
	if err != nil {
		return err
	}
	for _, blob := range []artifact.Document{config, manifest} {
		if int64(len(blob.Content)) > artifact.ManifestLimit {
			return fmt.Errorf("%w: with what is there, a manifest of %d bytes", errTooLarge, len(blob.Content))
		}
	}
	_, err = m.to.PushBlob(ctx, config.Descriptor, func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(config.Content)), nil
	})
	if err != nil {
		return err
	}
	return m.to.PushManifest(ctx, manifest.Descriptor, manifest.Content, tag)
}

// anew is a source with bounds of its own.
func anew(src Source) Source {
	if bounded, ok := src.(*ociregistry.Bounded); ok {
		return ociregistry.NewBounded(bounded.Reader)
	}
	return src
}
