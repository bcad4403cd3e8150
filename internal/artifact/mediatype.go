package artifact

import (
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Media types of manifests and layers, and of bills of materials, which hang off
// an artifact as referrers.
const (
	// MediaTypeDockerManifestList is Docker's form of an index, which foreign
	// publishers still write.
	MediaTypeDockerManifestList = "application/vnd.docker.distribution.manifest.list.v2+json"
	// MediaTypeDockerManifest is Docker's form of an image manifest.
	MediaTypeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	// MediaTypeDockerConfig is Docker's form of an image config.
	MediaTypeDockerConfig = "application/vnd.docker.container.image.v1+json"
	// MediaTypeDockerLayer is Docker's form of a gzip layer; the runner
	// project's own releaser writes it inside OCI manifests.
	MediaTypeDockerLayer = "application/vnd.docker.image.rootfs.diff.tar.gzip"

	// MediaTypeSPDX is an SPDX 2.3 document in JSON.
	MediaTypeSPDX = "application/spdx+json"
	// MediaTypeCycloneDX is a CycloneDX 1.6 document in JSON.
	MediaTypeCycloneDX = "application/vnd.cyclonedx+json"
)

// IsIndex reports whether a media type names an index, OCI's or Docker's.
func IsIndex(mediaType string) bool {
	return mediaType == ocispec.MediaTypeImageIndex || mediaType == MediaTypeDockerManifestList
}

// IsManifest reports whether a media type names an image manifest, OCI's or
// Docker's.
func IsManifest(mediaType string) bool {
	return mediaType == ocispec.MediaTypeImageManifest || mediaType == MediaTypeDockerManifest
}

// IsConfig reports whether a media type names an image config, OCI's or
// Docker's.
func IsConfig(mediaType string) bool {
	return mediaType == ocispec.MediaTypeImageConfig || mediaType == MediaTypeDockerConfig
}

// StaysAtOrigin reports whether a layer is left where its URLs say, rather than
// copied between registries: those of Windows' base images are (OCI image
// specification 1.1.1, layer.md, non-distributable layers; Docker calls them
// foreign). URLs alone are only other places to get a layer from.
func StaysAtOrigin(layer ocispec.Descriptor) bool {
	foreign := strings.HasPrefix(layer.MediaType, "application/vnd.oci.image.layer.nondistributable.") ||
		strings.HasPrefix(layer.MediaType, "application/vnd.docker.image.rootfs.foreign.")
	return foreign && len(layer.URLs) > 0
}

// Compression is how the tar stream of a layer is wrapped.
type Compression string

// The compressions of the OCI image specification's layer media types.
const (
	Uncompressed Compression = "none"
	Gzip         Compression = "gzip"
	Zstd         Compression = "zstd"
)

// LayerCompression returns the compression that a layer's media type names,
// and false for a media type that is no tar layer.
func LayerCompression(mediaType string) (Compression, bool) {
	switch mediaType {
	case ocispec.MediaTypeImageLayer, "application/vnd.docker.image.rootfs.diff.tar":
		return Uncompressed, true
	case ocispec.MediaTypeImageLayerGzip, MediaTypeDockerLayer:
		return Gzip, true
	case ocispec.MediaTypeImageLayerZstd, "application/vnd.docker.image.rootfs.diff.tar.zstd":
		return Zstd, true
	default:
		return "", false
	}
}
