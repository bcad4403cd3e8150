package installer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/progress"
)

const (
	// maxMirrored bounds the manifests that an index names, itself or by another
	// one, and maxNested how deep indexes may be in each other.
	maxMirrored = 1024
	maxNested   = 4
)

// Destination is where a mirror is written.
type Destination interface {
	// Resolve finds what a tag is on; [ErrNotFound] where there is none.
	Resolve(ctx context.Context, tag string) (ocispec.Descriptor, error)
	// FetchAll reads what is there; it refuses content of more than limit bytes.
	FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error)
	// PushBlob stores a blob unless it is there.
	PushBlob(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) (uploaded bool, err error)
	// PushManifest stores a manifest or index, and tags it. A subject is
	// announced so that its referrers can be listed.
	PushManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error
}

// MirrorOptions say what of an artifact is copied.
type MirrorOptions struct {
	// Platforms to copy, such as linux/arm64, read as by [WithPlatform]; all if empty. The index stays as it
	// is, byte for byte, so that its signature does, and names platforms that are
	// not there. Layouts take that; a registry that does not is [ErrAnswer] (sparse).
	Platforms []string
}

// Mirrored is what [Installer.Mirror] copied.
type Mirrored struct {
	Verified
	// Tags at the destination.
	Tags []string `json:"tags"`
	// Manifests counts indexes, manifests and referrers, Blobs the blobs, and
	// Uploaded those of them that were not there yet.
	Manifests int `json:"manifests"`
	Blobs     int `json:"blobs"`
	Uploaded  int `json:"uploaded"`
	// Bytes is the size of the uploaded blobs.
	Bytes int64 `json:"bytes"`
	// LeftOut is what was found beside the artifact and not copied.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// Mirror verifies a reference and copies the artifact that it stands for, byte
// for byte: index, manifests and layers, with what the policy's signers vouch for
// beside them: signatures and attestations by them, and documents, such as SBOMs,
// that these repeat or that are signed themselves. All else is left out, and said
// in [Mirrored.LeftOut]: anybody who may push can attach things. Tags come last:
// the version, and those of latest, 1 and 1.2 that point at it.
//
// The policy has to allow all that is copied: by evidence about the index, or
// about each manifest of it that is wanted. If the version's tag is on other
// content at the destination, it is [ErrRefused] (occupied). Signatures that are there stay,
// and are added to.
func (i *Installer) Mirror(ctx context.Context, ref Reference, to Destination, opts MirrorOptions) (Mirrored, error) {
	m := &mirror{to: to, manifests: map[digest.Digest]bool{}, seenBlobs: map[digest.Digest]bool{}}
	for _, name := range opts.Platforms {
		platform, err := artifact.ParsePlatform(name)
		if err != nil {
			return Mirrored{}, failed("mirroring", ref.String(), err)
		}
		m.platforms = append(m.platforms, platform)
	}
	if len(m.platforms) > 0 {
		// What is verified must be one of those that are copied.
		other := *i
		other.platform = m.platforms[0]
		i = &other
	} else {
		i = i.onAnyPlatform()
	}
	verified, err := i.verifyBy(ctx, ref, pick)
	if err != nil {
		return Mirrored{}, err
	}
	m.done.Verified = verified
	m.copying = func(size int64) func(int64) { return i.moving(StepCopying, verified, size) }
	if err = i.vouched(ctx, verified, m.wants); err == nil {
		err = m.open(ctx, i, verified)
	}
	if err == nil {
		err = m.run(ctx, verified)
	}
	return m.done, failed("mirroring", exactly(verified.Resolution), err)
}

// mirror is one copy in progress.
type mirror struct {
	rule      compiledRule
	from      Source
	places    []Source // of evidence
	to        Destination
	platforms []artifact.Platform
	// manifests and seenBlobs are what was copied, or is being copied.
	manifests, seenBlobs map[digest.Digest]bool
	done                 Mirrored
	// copying returns what is told how far a blob of that size is.
	copying func(size int64) func(done int64)
}

// open finds where to read: with bounds of its own, since what was read to verify
// does not count.
func (m *mirror) open(ctx context.Context, i *Installer, verified Verified) (err error) {
	m.from = anew(verified.source)
	if m.rule, err = i.policy.ruleFor(verified.Reference.Name()); err != nil {
		return err
	}
	m.places, err = i.evidenceSources(ctx, verified.Resolution, m.rule)
	return err
}

func (m *mirror) run(ctx context.Context, verified Verified) error {
	top := verified.chain.Subjects()[0]
	content, err := m.from.FetchAll(ctx, top, artifact.ManifestLimit)
	if err != nil {
		return err
	}
	tags, err := m.tags(ctx, verified)
	if err != nil {
		return err
	}
	err = m.free(ctx, verified.Version.Tag(), top.Digest)
	// Some registries answer that for a repository that is not there yet. Once
	// something is in it, they list its tags.
	hidden := errors.Is(err, ErrForbidden)
	if err != nil && !hidden {
		return err
	}
	if err := m.tree(ctx, top, content, 0); err != nil {
		return err
	}
	if hidden {
		if err := m.free(ctx, verified.Version.Tag(), top.Digest); err != nil {
			return err
		}
	}
	m.done.Tags = tags
	return m.to.PushManifest(ctx, top, content, tags...)
}

// free fails if the tag of the version is on other content at the destination.
func (m *mirror) free(ctx context.Context, tag string, want digest.Digest) error {
	there, err := m.to.Resolve(ctx, tag)
	if errors.Is(err, ErrNotFound) || err == nil && there.Digest == want {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: the tag %s there is %s", errOccupied, tag, there.Digest)
}

// tree copies a manifest with what it names, then itself, then what hangs off it.
func (m *mirror) tree(ctx context.Context, desc ocispec.Descriptor, content []byte, depth int) error {
	if m.manifests[desc.Digest] {
		return nil
	}
	if len(m.manifests) >= maxMirrored || depth > maxNested {
		return fmt.Errorf("%w: more than %d manifests, or indexes more than %d deep", errTooLarge, maxMirrored, maxNested)
	}
	m.manifests[desc.Digest] = true
	var err error
	if artifact.IsIndex(desc.MediaType) {
		err = m.children(ctx, desc, content, depth)
	} else {
		err = m.blobs(ctx, desc, content)
	}
	if err != nil {
		return err
	}
	if err := m.to.PushManifest(ctx, desc, content); err != nil {
		return m.sparse(desc, err)
	}
	m.done.Manifests++
	return m.attached(ctx, desc)
}

// sparse explains the refusal of an index with some platforms left out.
// Registries put it as a manifest that is unknown, or an index that is invalid.
func (m *mirror) sparse(desc ocispec.Descriptor, err error) error {
	if len(m.platforms) == 0 || !artifact.IsIndex(desc.MediaType) || !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrAnswer) {
		return err
	}
	return fmt.Errorf("%w: %w", errSparse, err)
}

func (m *mirror) children(ctx context.Context, desc ocispec.Descriptor, content []byte, depth int) error {
	index, err := artifact.DecodeIndex(desc.MediaType, content)
	if err != nil {
		return err
	}
	for _, entry := range index.Manifests {
		if !m.wants(entry) {
			continue
		}
		if err := m.fetchTree(ctx, entry, depth+1); err != nil {
			return partial(ctx, m.from, index, entry, err)
		}
	}
	return nil
}

// wants says whether an entry of an index is copied. Entries that are for no
// platform, as buildx' attestations, always are.
func (m *mirror) wants(entry ocispec.Descriptor) bool {
	if len(m.platforms) == 0 || entry.Platform == nil {
		return true
	}
	platform, err := artifact.PlatformFromOCI(*entry.Platform)
	return err != nil || platform.OS() == "unknown" || slices.Contains(m.platforms, platform.WithOSVersion(""))
}

func (m *mirror) fetchTree(ctx context.Context, desc ocispec.Descriptor, depth int) error {
	if !artifact.IsIndex(desc.MediaType) && !artifact.IsManifest(desc.MediaType) {
		return m.blob(ctx, m.from, desc)
	}
	content, err := m.from.FetchAll(ctx, desc, artifact.ManifestLimit)
	if err != nil {
		return err
	}
	return m.tree(ctx, ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size}, content, depth)
}

func (m *mirror) blobs(ctx context.Context, desc ocispec.Descriptor, content []byte) error {
	manifest, err := artifact.DecodeManifest(desc.MediaType, content)
	if err != nil {
		return err
	}
	for _, blob := range append([]ocispec.Descriptor{manifest.Config}, manifest.Layers...) {
		if artifact.StaysAtOrigin(blob) {
			continue
		}
		if err := m.blob(ctx, m.from, blob); err != nil {
			return err
		}
	}
	return nil
}

func (m *mirror) blob(ctx context.Context, from Source, desc ocispec.Descriptor) error {
	if m.seenBlobs[desc.Digest] {
		return nil
	}
	m.seenBlobs[desc.Digest] = true
	uploaded, err := m.to.PushBlob(ctx, desc, func() (io.ReadCloser, error) {
		content, err := from.Fetch(ctx, desc)
		if err != nil {
			return nil, err
		}
		return progress.ReadCloser(content, desc.Size, m.copying(desc.Size)), nil
	})
	if err != nil {
		return fmt.Errorf("blob %s: %w", desc.Digest, err)
	}
	m.done.Blobs++
	if uploaded {
		m.done.Uploaded++
		m.done.Bytes += desc.Size
	}
	return nil
}

// tags are the version's and the floating ones that point at it now.
func (m *mirror) tags(ctx context.Context, verified Verified) ([]string, error) {
	v := verified.Version
	tags := []string{v.Tag()}
	if t, err := version.ParseTag(verified.Tag); err == nil && verified.Tag != v.Tag() && t.Equal(v) {
		tags = append(tags, verified.Tag)
	}
	for _, alias := range []string{fmt.Sprintf("%d.%d", v.Major(), v.Minor()), fmt.Sprint(v.Major()), "latest"} {
		desc, err := m.from.Resolve(ctx, alias)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if desc.Digest == verified.Resolution.Digest() {
			tags = append(tags, alias)
		}
	}
	return tags, nil
}

// PublicTrustedRootJSON is the trusted root behind [PublicTrustedRoot], to be
// laid beside a mirror and named in the policies of those who use it.
func PublicTrustedRootJSON() []byte { return trust.PublicTrustedRootJSON() }
