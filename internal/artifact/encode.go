package artifact

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ConfigInput is what goes into an image config.
type ConfigInput struct {
	Platform Platform
	// Version is the plugin's version without "v", for EnvVersion.
	Version string
	// DiffIDs are the digests of the uncompressed layers, in order.
	DiffIDs []digest.Digest
	// Created is the time that the config carries; for reproducible bytes it
	// comes from SOURCE_DATE_EPOCH or the commit, never from the clock.
	Created time.Time
	// Labels are repeated from the manifest's annotations for tools that read
	// only configs.
	Labels map[string]string
	// Base, when set, is the config of a base image whose layers come first.
	Base *ocispec.Image
}

// EncodeConfig returns the bytes of an image config and its descriptor. Every
// field that a container runtime asks for is written: os, architecture, root
// file system, entrypoint and one history entry per layer.
func EncodeConfig(in ConfigInput) (ocispec.Descriptor, []byte, error) {
	created := in.Created.UTC().Truncate(time.Second)
	img := ocispec.Image{RootFS: ocispec.RootFS{Type: "layers"}}
	if in.Base != nil {
		img = *in.Base
		img.History = slices.Clone(img.History)
		img.RootFS.DiffIDs = slices.Clone(img.RootFS.DiffIDs)
		img.Config.Env = slices.Clone(img.Config.Env)
	}
	img.Created = &created
	img.Platform = in.Platform.OCI()
	img.Config.Entrypoint = []string{"/" + PluginDir + "/" + in.Platform.Executable()}
	img.Config.Cmd = nil
	img.Config.Env = append(img.Config.Env, EnvVersion+"="+in.Version)
	img.Config.Labels = in.Labels
	for _, id := range in.DiffIDs {
		img.RootFS.DiffIDs = append(img.RootFS.DiffIDs, id)
		img.History = append(img.History, ocispec.History{
			Created: &created, CreatedBy: "fleeting-plugin package", Comment: "fleeting plugin " + in.Version,
		})
	}
	return encode(ocispec.MediaTypeImageConfig, img)
}

// ManifestInput is what goes into an image manifest.
type ManifestInput struct {
	Config      ocispec.Descriptor
	Layers      []ocispec.Descriptor
	Annotations map[string]string
	// ArtifactType says what the manifest is when its config does not; used
	// for referrers.
	ArtifactType string
	// Subject makes the manifest a referrer of another one.
	Subject *ocispec.Descriptor
}

// EncodeManifest returns the bytes of an image manifest and its descriptor,
// which carries the artifact type and annotations as a list of referrers
// shows them.
func EncodeManifest(in ManifestInput) (ocispec.Descriptor, []byte, error) {
	m := ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: in.ArtifactType,
		Config:       in.Config,
		Layers:       in.Layers,
		Subject:      in.Subject,
		Annotations:  in.Annotations,
	}
	desc, b, err := encode(m.MediaType, m)
	desc.ArtifactType = in.ArtifactType
	return desc, b, err
}

// ReferrerInput is one document that hangs off another manifest.
type ReferrerInput struct {
	Subject      ocispec.Descriptor
	ArtifactType string
	// Layer is the document's blob.
	Layer       ocispec.Descriptor
	Annotations map[string]string
}

// EncodeReferrer returns the manifest of a document that hangs off another
// manifest, with the empty config of image-spec v1.1.1, manifest.md,
// "Guidelines for Artifact Usage". The empty config's bytes, EmptyConfig, must
// be pushed beside it.
func EncodeReferrer(in ReferrerInput) (ocispec.Descriptor, []byte, error) {
	subject := ocispec.Descriptor{
		MediaType: in.Subject.MediaType, Digest: in.Subject.Digest, Size: in.Subject.Size,
	}
	return EncodeManifest(ManifestInput{
		Config:       ocispec.DescriptorEmptyJSON,
		Layers:       []ocispec.Descriptor{in.Layer},
		ArtifactType: in.ArtifactType,
		Annotations:  in.Annotations,
		Subject:      &subject,
	})
}

// Document is a descriptor and the bytes that it describes.
type Document struct {
	Descriptor ocispec.Descriptor
	Content    []byte
}

// EncodeSignatures returns the image that holds layers of evidence under one of
// cosign 2's tags. The config is what cosign writes, so that registries which look
// into configs accept it.
func EncodeSignatures(layers []ocispec.Descriptor) (config, manifest Document, err error) {
	image := ocispec.Image{RootFS: ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{}}}
	for _, l := range layers {
		image.RootFS.DiffIDs = append(image.RootFS.DiffIDs, l.Digest)
	}
	if config.Descriptor, config.Content, err = encode(ocispec.MediaTypeImageConfig, image); err != nil {
		return config, manifest, err
	}
	manifest.Descriptor, manifest.Content, err = EncodeManifest(ManifestInput{Config: config.Descriptor, Layers: layers})
	return config, manifest, err
}

// EmptyConfig returns the descriptor and the two bytes of the empty config.
func EmptyConfig() (ocispec.Descriptor, []byte) {
	d := ocispec.DescriptorEmptyJSON
	return ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, []byte("{}")
}

// EncodeIndex returns the bytes of an image index and its descriptor. Entries
// keep the caller's order.
func EncodeIndex(manifests []ocispec.Descriptor, annotations map[string]string) (ocispec.Descriptor, []byte, error) {
	if manifests == nil {
		manifests = []ocispec.Descriptor{}
	}
	return encode(ocispec.MediaTypeImageIndex, ocispec.Index{
		Versioned:   specs.Versioned{SchemaVersion: 2},
		MediaType:   ocispec.MediaTypeImageIndex,
		Manifests:   manifests,
		Annotations: annotations,
	})
}

func encode(mediaType string, v any) (ocispec.Descriptor, []byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return ocispec.Descriptor{}, nil, fmt.Errorf("encoding %s: %w", mediaType, err)
	}
	return Describe(mediaType, b), b, nil
}

// Describe returns the descriptor of bytes: media type, SHA-256 and size.
func Describe(mediaType string, b []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
}
