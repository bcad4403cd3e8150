package packager

import (
	"bytes"
	"context"
	"fmt"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// tree is an artifact as it is published: an index with its entries, or a single
// manifest, such as `docker build` makes for one platform.
type tree struct {
	top         ocispec.Descriptor
	annotations map[string]string
	// entries are those of the index, or the single manifest.
	entries []ocispec.Descriptor
}

// single reports whether there is no index.
func (t tree) single() bool { return !artifact.IsIndex(t.top.MediaType) }

// subjects are what is signed: the index, and the manifests of its platforms.
// Entries that are not images, such as the attestations of buildx, are not.
func (t tree) subjects() []ocispec.Descriptor {
	all := []ocispec.Descriptor{plain(t.top)}
	if t.single() {
		return all
	}
	for _, m := range t.entries {
		if m.Platform != nil && m.Platform.OS != "unknown" {
			all = append(all, plain(m))
		}
	}
	return all
}

// readTree reads what a tag or digest resolves to. The error is the registry's, or
// [ErrNotPlugin] for what is neither an index nor a manifest.
func readTree(ctx context.Context, from Source, reference string) (tree, error) {
	desc, err := from.Resolve(ctx, reference)
	if err != nil {
		return tree{}, err
	}
	content, err := from.FetchAll(ctx, desc, artifact.ManifestLimit)
	if err != nil {
		return tree{}, err
	}
	refuse := func(err error) (tree, error) {
		return tree{}, fmt.Errorf("%s: %w: %w", from.Name(), ErrNotPlugin, err)
	}
	if artifact.IsIndex(desc.MediaType) {
		index, err := artifact.DecodeIndex(desc.MediaType, content)
		if err != nil {
			return refuse(err)
		}
		return tree{plain(desc), index.Annotations, index.Manifests}, nil
	}
	manifest, err := artifact.DecodeManifest(desc.MediaType, content)
	if err != nil {
		return refuse(err)
	}
	entry := plain(desc)
	if !artifact.IsConfig(manifest.Config.MediaType) { // as oras push makes it
		return tree{plain(desc), manifest.Annotations, []ocispec.Descriptor{entry}}, nil
	}
	raw, err := from.FetchAll(ctx, manifest.Config, artifact.ManifestLimit)
	if err != nil {
		return tree{}, err
	}
	config, err := artifact.DecodeConfig(raw)
	if err != nil {
		return refuse(err)
	}
	entry.Platform = &config.Platform
	return tree{plain(desc), manifest.Annotations, []ocispec.Descriptor{entry}}, nil
}

// referrer is a manifest that refers to another one, with its config and layers.
type referrer struct {
	manifest blob
	parts    []part
	// bundle says that it carries a signature or attestation, which have events of
	// their own.
	bundle bool
}

// part is a blob that is not in memory.
type part struct {
	desc ocispec.Descriptor
	open func() (io.ReadCloser, error)
}

func (b blob) part() part {
	return part{b.desc, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.content)), nil }}
}

// referrersOf returns what refers to a manifest.
func referrersOf(ctx context.Context, from Content, subject ocispec.Descriptor) ([]referrer, error) {
	described, err := from.Referrers(ctx, subject)
	if err != nil {
		return nil, err
	}
	var all []referrer
	for _, desc := range described {
		content, err := from.FetchAll(ctx, desc, artifact.ManifestLimit)
		if err != nil {
			return nil, err
		}
		m, err := artifact.DecodeManifest(desc.MediaType, content)
		if err != nil {
			return nil, fmt.Errorf("referrer %s: %w", desc.Digest, err)
		}
		r := referrer{manifest: blob{plain(desc), content}}
		for _, p := range append(m.Layers, m.Config) {
			r.parts = append(r.parts, part{plain(p), func() (io.ReadCloser, error) { return from.Fetch(ctx, p) }})
		}
		all = append(all, r)
	}
	return all, nil
}

// attach stores referrers of a manifest, all with one write where the registry lists
// them under a tag.
func attach(ctx context.Context, to Target, subject ocispec.Descriptor, referrers []referrer, report func(Event)) error {
	if len(referrers) == 0 {
		return nil
	}
	var manifests []ociregistry.Manifest
	for _, r := range referrers {
		told := report
		if r.bundle {
			told = func(Event) {}
		}
		for _, p := range r.parts {
			if err := copyBlob(ctx, to, p.desc, p.open, told); err != nil {
				return err
			}
		}
		manifests = append(manifests, ociregistry.Manifest{Descriptor: r.manifest.desc, Content: r.manifest.content})
	}
	if err := to.Attach(ctx, subject, manifests...); err != nil {
		return err
	}
	for _, r := range referrers {
		if !r.bundle {
			report(Event{Kind: EventReferrer, Subject: subject.Digest.String(), Size: r.manifest.desc.Size})
		}
	}
	return nil
}

func pushBlob(ctx context.Context, to Target, b blob, report func(Event)) error {
	return copyBlob(ctx, to, b.desc, b.part().open, report)
}

func copyBlob(ctx context.Context, to Target, desc ocispec.Descriptor, open func() (io.ReadCloser, error), report func(Event)) error {
	uploaded, err := to.PushBlob(ctx, desc, open)
	if err != nil {
		return fmt.Errorf("pushing blob %s: %w", desc.Digest, err)
	}
	report(blobEvent(desc, uploaded))
	return nil
}
