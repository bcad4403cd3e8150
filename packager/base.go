package packager

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// Base is an image that Windows images are built on. Without one, the artifact
// can be installed on Windows, but not be run as a container there: Windows has
// no image "scratch" that starts.
type Base struct {
	// Reference is how the image is called in the annotations, for instance
	// "mcr.microsoft.com/windows/nanoserver:ltsc2022"; its tag or digest is
	// looked up in From.
	Reference string
	// From is the base's repository.
	From Source
}

// baseImage is one platform of a base.
type baseImage struct {
	name   string
	digest digest.Digest
	// osVersion is the build of Windows that the base is for.
	osVersion string
	config    ocispec.Image
	layers    []ocispec.Descriptor
	from      Content
}

// resolveBases finds the images of the bases for a platform.
func resolveBases(ctx context.Context, bases []Base, platform artifact.Platform) ([]baseImage, error) {
	if platform.OS() != "windows" {
		return nil, nil
	}
	var all []baseImage
	for _, b := range bases {
		found, err := b.resolve(ctx, platform)
		if err != nil {
			return nil, fmt.Errorf("base image %s: %w", b.Reference, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func (b Base) resolve(ctx context.Context, platform artifact.Platform) ([]baseImage, error) {
	_, identifier, err := ParseReference(b.Reference)
	if err != nil {
		return nil, err
	}
	if identifier == "" {
		identifier = latest
	}
	desc, err := b.From.Resolve(ctx, identifier)
	if err != nil {
		return nil, err
	}
	content, err := b.From.FetchAll(ctx, desc, artifact.ManifestLimit)
	if err != nil {
		return nil, err
	}
	index, err := artifact.DecodeIndex(desc.MediaType, content)
	if err != nil {
		return nil, err
	}
	var found []baseImage
	for _, entry := range index.Manifests {
		if entry.Platform == nil || entry.Platform.OS != "windows" || entry.Platform.Architecture != platform.Arch() {
			continue
		}
		image, err := b.image(ctx, entry)
		if err != nil {
			return nil, err
		}
		found = append(found, image)
	}
	if len(found) == 0 {
		return nil, &dist.InputError{Path: b.Reference, Problem: "has no image for " + platform.String(), Remedy: "choose another base image, or omit the platform"}
	}
	return found, nil
}

// image reads one image of a base.
func (b Base) image(ctx context.Context, entry ocispec.Descriptor) (baseImage, error) {
	content, err := b.From.FetchAll(ctx, plain(entry), artifact.ManifestLimit)
	if err != nil {
		return baseImage{}, err
	}
	m, err := artifact.DecodeManifest(entry.MediaType, content)
	if err != nil {
		return baseImage{}, err
	}
	raw, err := b.From.FetchAll(ctx, plain(m.Config), artifact.ManifestLimit)
	if err != nil {
		return baseImage{}, err
	}
	config, err := artifact.DecodeConfig(raw)
	if err != nil {
		return baseImage{}, err
	}
	image := baseImage{name: b.Reference, digest: entry.Digest, osVersion: entry.Platform.OSVersion, config: config, from: b.From}
	for _, l := range m.Layers {
		if l.MediaType, err = ociLayerType(l.MediaType); err != nil {
			return baseImage{}, err
		}
		image.layers = append(image.layers, ocispec.Descriptor{MediaType: l.MediaType, Digest: l.Digest, Size: l.Size, URLs: l.URLs})
	}
	return image, nil
}

// ociLayerType names Docker's layer types as OCI does, for an OCI manifest.
func ociLayerType(mediaType string) (string, error) {
	switch {
	case mediaType == artifact.MediaTypeDockerLayer:
		return ocispec.MediaTypeImageLayerGzip, nil
	case mediaType == "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip":
		return ocispec.MediaTypeImageLayerNonDistributableGzip, nil //nolint:staticcheck // what Windows bases are made of
	case strings.HasPrefix(mediaType, "application/vnd.oci.image.layer."):
		return mediaType, nil
	}
	return "", fmt.Errorf("%w: layer of type %q", ErrNotPlugin, mediaType)
}

// pushBases copies the layers of the bases that do not stay at their origin.
func (b *built) pushBases(ctx context.Context, to Target, report func(Event)) error {
	var done []digest.Digest
	for _, p := range b.platforms {
		if p.base == nil {
			continue
		}
		for _, l := range p.base.layers {
			if artifact.StaysAtOrigin(l) || slices.Contains(done, l.Digest) {
				continue
			}
			uploaded, err := to.PushBlob(ctx, plain(l), func() (io.ReadCloser, error) { return p.base.from.Fetch(ctx, plain(l)) })
			if err != nil {
				return fmt.Errorf("copying layer %s of %s: %w", l.Digest, p.base.name, err)
			}
			report(blobEvent(plain(l), uploaded))
			done = append(done, l.Digest)
		}
	}
	return nil
}
