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

const (
	// maxReferrers bounds how many referrers of one subject are looked at;
	// anybody who may push can add some.
	maxReferrers = 256
	// maxLayers bounds the pieces of evidence in one manifest.
	maxLayers = 128
	// maxPayload bounds one piece of evidence, in bytes.
	maxPayload = 16 << 20
)

// ErrUnavailable is evidence that is, or may be, there and could not be fetched.
var ErrUnavailable = errors.New("evidence could not be fetched")

// Source is where evidence is looked for: one repository or one layout.
type Source interface {
	Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error)
	FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error)
	Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error)
}

// Discover hands what it finds about the subject to take, place by place, until
// take returns false or there is nothing more. The error joins, each matching
// [ErrUnavailable], what could not be fetched; what was handed over counts
// regardless, since evidence can only speak for an artifact.
func Discover(ctx context.Context, src Source, subject ocispec.Descriptor, take func([]trust.Evidence) bool) error {
	s := search{src: src, take: take, seen: map[digest.Digest]bool{}}
	s.tag(ctx, artifact.SignatureTag(subject.Digest))
	s.referrers(ctx, subject)
	s.tag(ctx, artifact.AttestationTag(subject.Digest))
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(s.failures...)
}

// Hopeless says that after this error there is no point in further requests.
func Hopeless(err error) bool {
	return errors.Is(err, ociregistry.ErrUnavailable) || errors.Is(err, ociregistry.ErrRateLimited)
}

type search struct {
	src      Source
	take     func([]trust.Evidence) bool
	seen     map[digest.Digest]bool
	failures []error
	done     bool
}

// fail notes what could not be fetched. After the retries that a registry which
// is down has had already, the other places are not tried.
func (s *search) fail(what string, err error) {
	s.done = s.done || Hopeless(err)
	s.failures = append(s.failures, fmt.Errorf("%w: %s: %w", ErrUnavailable, what, err))
}

func (s *search) tag(ctx context.Context, tag string) {
	if s.done || ctx.Err() != nil {
		return
	}
	desc, err := s.src.Resolve(ctx, tag)
	if errors.Is(err, ociregistry.ErrNotFound) {
		return
	}
	if err != nil {
		s.fail("tag "+tag, err)
		return
	}
	s.manifest(ctx, "tag "+tag, desc)
}

func (s *search) referrers(ctx context.Context, subject ocispec.Descriptor) {
	if s.done || ctx.Err() != nil {
		return
	}
	found, err := s.src.Referrers(ctx, subject)
	if err != nil {
		s.fail("referrers of "+subject.Digest.String(), err)
		return
	}
	found = slices.Clone(found)
	// Clients disagree about the artifact type, so it chooses nothing; it only
	// says where to look first.
	slices.SortStableFunc(found, func(a, b ocispec.Descriptor) int { return cmp.Compare(rank(a), rank(b)) })
	for i, desc := range found {
		if s.done || ctx.Err() != nil {
			return
		}
		if i == maxReferrers {
			s.fail("referrers of "+subject.Digest.String(), fmt.Errorf("%d are more than the %d that are looked at", len(found), maxReferrers))
			return
		}
		if artifact.IsManifest(desc.MediaType) {
			s.manifest(ctx, "referrer "+desc.Digest.String(), desc)
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

func (s *search) manifest(ctx context.Context, origin string, desc ocispec.Descriptor) {
	if s.seen[desc.Digest] {
		return
	}
	s.seen[desc.Digest] = true
	content, err := s.src.FetchAll(ctx, desc, artifact.ManifestLimit)
	if err != nil {
		s.fail(origin, err)
		return
	}
	manifest, err := artifact.DecodeManifest(desc.MediaType, content)
	if err != nil {
		s.fail(origin, err)
		return
	}
	var found []trust.Evidence
	for i, layer := range manifest.Layers {
		if i == maxLayers {
			s.fail(origin, fmt.Errorf("%d layers are more than the %d that are looked at", len(manifest.Layers), maxLayers))
			break
		}
		format, ok := trust.FormatOf(layer.MediaType)
		if !ok {
			continue
		}
		payload, err := s.src.FetchAll(ctx, layer, maxPayload)
		if err != nil {
			s.fail(origin, err)
			continue
		}
		found = append(found, trust.Evidence{Format: format, Payload: payload, Annotations: layer.Annotations, Origin: origin})
	}
	if len(found) > 0 && !s.take(found) {
		s.done = true
	}
}
