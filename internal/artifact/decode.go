package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/jsonbound"
)

const (
	// ManifestLimit bounds an index, a manifest or a config, in bytes. The
	// distribution specification v1.1.1 asks registries to take manifests of
	// 4 MiB at least, and they take no more.
	ManifestLimit = 4 << 20
	// entryLimit bounds the manifests of an index and the layers of a
	// manifest.
	entryLimit = 1000
	// valueLimit bounds the values of a document: those of a full index.
	valueLimit = 100_000
)

// envelope has the fields that tell what a document is. A document that could
// be read as two things is refused: two readers would see two artifacts.
type envelope struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     string          `json:"mediaType"`
	Manifests     json.RawMessage `json:"manifests"`
	Layers        json.RawMessage `json:"layers"`
	Config        json.RawMessage `json:"config"`
}

// DecodeIndex reads an index, OCI's or Docker's. mediaType is what the
// registry or the descriptor said. It returns ErrInvalid for bytes over
// ManifestLimit, trailing data, another kind of document, too many or too deep
// values, over a thousand entries, and entries without a valid digest, size or media type. Entries
// may lack a platform.
func DecodeIndex(mediaType string, b []byte) (ocispec.Index, error) {
	var index ocispec.Index
	env, err := decodeDocument(mediaType, b, &index)
	if err != nil {
		return ocispec.Index{}, err
	}
	if !IsIndex(mediaType) || env.Layers != nil || env.Config != nil {
		return ocispec.Index{}, invalid("%.80q is no index", mediaType)
	}
	if err := checkEntries(index.Manifests); err != nil {
		return ocispec.Index{}, err
	}
	return index, nil
}

// DecodeManifest reads an image manifest, OCI's or Docker's, under the rules
// of DecodeIndex.
func DecodeManifest(mediaType string, b []byte) (ocispec.Manifest, error) {
	var m ocispec.Manifest
	env, err := decodeDocument(mediaType, b, &m)
	if err != nil {
		return ocispec.Manifest{}, err
	}
	if !IsManifest(mediaType) || env.Manifests != nil {
		return ocispec.Manifest{}, invalid("%.80q is no image manifest", mediaType)
	}
	if err := checkEntries(append([]ocispec.Descriptor{m.Config}, m.Layers...)); err != nil {
		return ocispec.Manifest{}, err
	}
	return m, nil
}

// DecodeConfig reads an image config, OCI's or Docker's. It returns ErrInvalid
// for bytes over ManifestLimit, trailing data, and too many or too deep values.
func DecodeConfig(b []byte) (ocispec.Image, error) {
	var img ocispec.Image
	if err := decodeStrict(b, &img); err != nil {
		return ocispec.Image{}, err
	}
	return img, nil
}

func decodeDocument(mediaType string, b []byte, into any) (envelope, error) {
	var env envelope
	if err := decodeStrict(b, &env); err != nil {
		return env, err
	}
	if err := decodeStrict(b, into); err != nil {
		return env, err
	}
	if env.SchemaVersion != 2 {
		return env, invalid("schemaVersion %d, want 2", env.SchemaVersion)
	}
	if env.MediaType != "" && env.MediaType != mediaType {
		return env, invalid("document says %.80q, registry says %.80q", env.MediaType, mediaType)
	}
	return env, nil
}

func decodeStrict(b []byte, into any) error {
	if len(b) > ManifestLimit {
		return invalid("%d bytes are over the limit of %d", len(b), ManifestLimit)
	}
	if err := jsonbound.Check(b, valueLimit); err != nil {
		return invalid("%v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(into); err != nil {
		return invalid("%v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return invalid("data after the JSON document")
	}
	return nil
}

func checkEntries(descs []ocispec.Descriptor) error {
	if len(descs) > entryLimit {
		return invalid("%d entries are over the limit of %d", len(descs), entryLimit)
	}
	for _, d := range descs {
		if err := CheckDescriptor(d); err != nil {
			return err
		}
	}
	return nil
}

// CheckDescriptor returns ErrInvalid unless d has a media type, a size and a
// SHA-256 or SHA-512 digest in its canonical spelling.
func CheckDescriptor(d ocispec.Descriptor) error {
	if err := d.Digest.Validate(); err != nil {
		return invalid("descriptor digest %.80q: %v", d.Digest, err)
	}
	if a := d.Digest.Algorithm(); a != digest.SHA256 && a != digest.SHA512 {
		return invalid("descriptor digest %q: unsupported algorithm", d.Digest)
	}
	if d.Size < 0 {
		return invalid("descriptor %s: size %d", d.Digest, d.Size)
	}
	if d.MediaType == "" {
		return invalid("descriptor %s: no media type", d.Digest)
	}
	return nil
}
