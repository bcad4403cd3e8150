package plugintest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// Target is what tests push to: a repository or a layout.
type Target interface {
	PushBlob(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) (bool, error)
	PushManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error
}

// Plugin is an artifact to make, in the runner's layout.
type Plugin struct {
	// Version is the annotation of the layer.
	Version string
	// Platforms default to this machine's and two others.
	Platforms []string
	// Body is the content of the executable; a space and the platform follow it.
	Body string
	// Entries, Manifest and Index change the parts before they are encoded; each
	// may be nil.
	Entries  func(platform string, in []Entry) []Entry
	Manifest func(*ocispec.Manifest)
	Index    func(*ocispec.Index)
}

// Published is what came out: descriptors, the lower two by platform.
type Published struct {
	Index     ocispec.Descriptor
	Manifests map[string]ocispec.Descriptor
	Layers    map[string]ocispec.Descriptor
}

// Publish makes an artifact and pushes it under the tags.
func Publish(tb testing.TB, to Target, p Plugin, tags ...string) Published {
	tb.Helper()
	if p.Platforms == nil {
		p.Platforms = []string{artifact.HostPlatform().String(), "linux/s390x", "windows/amd64"}
		if p.Platforms[0] == p.Platforms[2] {
			p.Platforms[2] = "linux/amd64"
		}
	}
	out := Published{Manifests: map[string]ocispec.Descriptor{}, Layers: map[string]ocispec.Descriptor{}}
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	for _, name := range p.Platforms {
		platform, err := artifact.ParsePlatform(name)
		if err != nil {
			tb.Fatal(err)
		}
		manifest, layer, executable := publishPlatform(tb, to, p, platform)
		out.Manifests[name], out.Layers[name] = manifest, layer
		oci := platform.OCI()
		manifest.Platform = &oci
		manifest.Annotations = map[string]string{artifact.AnnotationExecutable: executable.String()}
		index.Manifests = append(index.Manifests, manifest)
	}
	if p.Index != nil {
		p.Index(&index)
	}
	out.Index = PushJSON(tb, to, ocispec.MediaTypeImageIndex, index, tags...)
	return out
}

func publishPlatform(tb testing.TB, to Target, p Plugin, platform artifact.Platform) (manifest, layer ocispec.Descriptor, executable digest.Digest) {
	tb.Helper()
	entries := []Entry{{Name: "plugin/" + platform.Executable(), Body: p.Body + " " + platform.String()}}
	if platform.OS() == "windows" {
		entries[0].Name = "Files/" + entries[0].Name
	}
	if p.Entries != nil {
		entries = p.Entries(platform.String(), entries)
	}
	for _, entry := range entries {
		if path.Base(entry.Name) == platform.Executable() {
			executable = digest.FromString(entry.Body)
		}
	}
	archive := Tar(tb, entries)
	layer = PushBlob(tb, to, ocispec.MediaTypeImageLayerGzip, Gzip(tb, archive))
	layer.Annotations = map[string]string{artifact.AnnotationLayer: p.Version}
	config, content, err := artifact.EncodeConfig(artifact.ConfigInput{
		Platform: platform, Version: p.Version, DiffIDs: []digest.Digest{digest.FromBytes(archive)},
	})
	if err != nil {
		tb.Fatal(err)
	}
	push(tb, to, config, content)
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: config, Layers: []ocispec.Descriptor{layer},
	}
	if p.Manifest != nil {
		p.Manifest(&m)
	}
	return PushJSON(tb, to, ocispec.MediaTypeImageManifest, m), layer, executable
}

// PushJSON pushes a manifest or index under the tags.
func PushJSON(tb testing.TB, to Target, mediaType string, value any, tags ...string) ocispec.Descriptor {
	tb.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	desc := artifact.Describe(mediaType, content)
	if err := to.PushManifest(tb.Context(), desc, content, tags...); err != nil {
		tb.Fatal(err)
	}
	return desc
}

// PushBlob pushes a blob.
func PushBlob(tb testing.TB, to Target, mediaType string, content []byte) ocispec.Descriptor {
	tb.Helper()
	desc := artifact.Describe(mediaType, content)
	push(tb, to, desc, content)
	return desc
}

func push(tb testing.TB, to Target, desc ocispec.Descriptor, content []byte) {
	tb.Helper()
	_, err := to.PushBlob(tb.Context(), desc, func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}
