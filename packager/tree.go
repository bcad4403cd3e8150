package packager

import (
	"context"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
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
