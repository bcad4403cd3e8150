// Package evidence finds what vouches for an artifact in a registry: cosign's
// signature and attestation tags, and referrers.
//
// What it finds is bytes, trusted for nothing. What it cannot fetch is an error
// beside what it found, never an absence: only a registry that says "not found"
// about the place itself means that nothing is there.
package evidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// Bounds of one search. Whoever may push to the repository decides what is found.
const (
	// maxReferrers bounds how many referrers of one subject are looked at.
	maxReferrers = 256
	// maxLayers bounds the pieces of evidence in one manifest.
	maxLayers = 128
	// maxPieces bounds the pieces of evidence in all, maxBytes their bytes. A
	// piece counts each time that it is there.
	maxPieces = 512
	maxBytes  = 32 << 20
)

// ErrUnavailable is evidence that is, or may be, there and could not be fetched.
var ErrUnavailable = errors.New("evidence could not be fetched")

// Source is where evidence is looked for: one repository or one layout.
type Source interface {
	Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error)
	FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error)
	Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error)
}

// Found is a piece of evidence, and where it is.
type Found struct {
	trust.Evidence
	// Manifest is what holds it, Layer the layer, Tag the tag of the manifest, ""
	// for a referrer.
	Manifest, Layer ocispec.Descriptor
	Tag             string
}

// Search is one search for evidence, about any number of subjects. Its zero value
// is ready.
type Search struct {
	// Other is told of each referrer that was looked at and holds no evidence, if
	// it is set.
	Other func(ocispec.Descriptor)

	pieces int
	bytes  int64
	full   error
}

// Discover hands what it finds about the subject to take, piece by piece, until
// take returns false, or there is nothing more, or the search has had all that one
// may have. The error joins, each matching [ErrUnavailable], what could not be
// fetched or was too much; what was handed over counts regardless, since evidence
// can only speak for an artifact.
func (s *Search) Discover(ctx context.Context, src Source, subject ocispec.Descriptor, take func(Found) bool) error {
	v := visit{search: s, src: src, take: take, seen: map[digest.Digest]bool{}}
	v.tag(ctx, artifact.SignatureTag(subject.Digest))
	v.referrers(ctx, subject)
	v.tag(ctx, artifact.AttestationTag(subject.Digest))
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(v.failures...)
}

// count refuses one more piece of evidence once there were too many.
func (s *Search) count(size int64) error {
	s.pieces++
	s.bytes += size
	if s.full == nil && s.pieces > maxPieces {
		s.full = fmt.Errorf("%w: more than %d pieces of evidence", ociregistry.ErrTooLarge, maxPieces)
	}
	if s.full == nil && s.bytes > maxBytes {
		s.full = fmt.Errorf("%w: more than %d bytes of evidence", ociregistry.ErrTooLarge, maxBytes)
	}
	return s.full
}

// Hopeless says that after this error there is no point in further requests.
func Hopeless(err error) bool {
	return errors.Is(err, ociregistry.ErrUnavailable) || errors.Is(err, ociregistry.ErrRateLimited)
}

// visit is what a search does for one subject in one place.
type visit struct {
	search   *Search
	src      Source
	take     func(Found) bool
	seen     map[digest.Digest]bool
	failures []error
	done     bool
	// last is the content that was fetched last.
	last    digest.Digest
	content []byte
}

// fail notes what could not be fetched. After the retries that a registry which
// is down has had already, the other places are not tried.
func (v *visit) fail(what string, err error) {
	v.done = v.done || Hopeless(err)
	v.failures = append(v.failures, fmt.Errorf("%w: %s: %w", ErrUnavailable, what, err))
}

func (v *visit) tag(ctx context.Context, tag string) {
	if v.done || ctx.Err() != nil {
		return
	}
	desc, err := v.src.Resolve(ctx, tag)
	if errors.Is(err, ociregistry.ErrNotFound) {
		return
	}
	if err != nil {
		v.fail("tag "+tag, err)
		return
	}
	v.manifest(ctx, tag, desc)
}

func (v *visit) referrers(ctx context.Context, subject ocispec.Descriptor) {
	if v.done || ctx.Err() != nil {
		return
	}
	found, err := v.src.Referrers(ctx, subject)
	if err != nil {
		v.fail("referrers of "+subject.Digest.String(), err)
		return
	}
	found = slices.Clone(found)
	// Clients disagree about the artifact type, so it chooses nothing; it only
	// says where to look first.
	slices.SortStableFunc(found, func(a, b ocispec.Descriptor) int { return cmp.Compare(rank(a), rank(b)) })
	for i, desc := range found {
		if v.done || ctx.Err() != nil {
			return
		}
		if i == maxReferrers {
			v.fail("referrers of "+subject.Digest.String(), fmt.Errorf("%w: %d are more than the %d that are looked at", ociregistry.ErrTooLarge, len(found), maxReferrers))
			return
		}
		if artifact.IsManifest(desc.MediaType) {
			v.manifest(ctx, "", desc)
		}
	}
}

func rank(d ocispec.Descriptor) int {
	switch d.ArtifactType {
	case artifact.MediaTypeBundle:
		return 0
	case artifact.MediaTypeSPDX, artifact.MediaTypeCycloneDX:
		return 2
	}
	return 1
}

// manifest hands over the evidence in a manifest, which is under a tag or a
// referrer.
func (v *visit) manifest(ctx context.Context, tag string, desc ocispec.Descriptor) {
	if v.seen[desc.Digest] {
		return
	}
	v.seen[desc.Digest] = true
	origin := "tag " + tag
	if tag == "" {
		origin = "referrer " + desc.Digest.String()
	}
	content, err := v.src.FetchAll(ctx, desc, artifact.ManifestLimit)
	if err != nil {
		v.fail(origin, err)
		return
	}
	manifest, err := artifact.DecodeManifest(desc.MediaType, content)
	if err != nil {
		v.fail(origin, err)
		return
	}
	holds := false
	for i, layer := range manifest.Layers {
		format, ok := trust.FormatOf(layer.MediaType)
		holds = holds || ok
		if ok && i >= maxLayers {
			v.fail(origin, fmt.Errorf("%w: %d layers are more than the %d that are looked at", ociregistry.ErrTooLarge, len(manifest.Layers), maxLayers))
			return
		}
		if ok {
			v.piece(ctx, Found{trust.Evidence{Format: format, Annotations: layer.Annotations, Origin: origin}, desc, layer, tag})
		}
		if v.done || ctx.Err() != nil {
			return
		}
	}
	if !holds && tag == "" && v.search.Other != nil {
		v.search.Other(desc)
	}
}

// piece hands a piece of evidence over. The same bundle is the same evidence
// wherever it is; of other forms the annotations are a part.
func (v *visit) piece(ctx context.Context, found Found) {
	layer := found.Layer
	bundle := found.Format == trust.FormatBundle
	if bundle && v.seen[layer.Digest] {
		return
	}
	if layer.Size > trust.MaxPayload {
		v.fail(found.Origin, fmt.Errorf("%w: a layer of %d bytes, more than %d", ociregistry.ErrTooLarge, layer.Size, trust.MaxPayload))
		return
	}
	if err := v.search.count(layer.Size); err != nil {
		v.fail(found.Origin, err)
		v.done = true
		return
	}
	if v.last != layer.Digest {
		content, err := v.src.FetchAll(ctx, layer, trust.MaxPayload)
		if err != nil {
			v.fail(found.Origin, err)
			return
		}
		v.last, v.content = layer.Digest, content
	}
	v.seen[layer.Digest] = v.seen[layer.Digest] || bundle
	found.Payload = v.content
	if !v.take(found) {
		v.done = true
	}
}
