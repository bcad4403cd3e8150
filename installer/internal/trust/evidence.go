package trust

import (
	"fmt"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// Format is the form of a piece of evidence.
type Format int

// The forms of evidence. The zero value is none of them and is refused.
const (
	// FormatSimpleSigning is a layer of a `.sig` manifest.
	FormatSimpleSigning Format = iota + 1
	// FormatDSSE is a layer of an `.att` manifest: a DSSE envelope.
	FormatDSSE
	// FormatBundle is a sigstore bundle, version 0.1 to 0.3.
	FormatBundle
)

// FormatOf tells the form from a layer's media type. It reports false for a
// media type that carries no evidence.
func FormatOf(mediaType string) (Format, bool) {
	switch {
	case mediaType == artifact.MediaTypeSimpleSigning:
		return FormatSimpleSigning, true
	case mediaType == artifact.MediaTypeDSSE:
		return FormatDSSE, true
	case artifact.IsBundle(mediaType):
		return FormatBundle, true
	}
	return 0, false
}

// String names the format.
func (f Format) String() string {
	switch f {
	case FormatSimpleSigning:
		return "simple signing"
	case FormatDSSE:
		return "DSSE"
	case FormatBundle:
		return "bundle"
	}
	return fmt.Sprintf("format %d", int(f))
}

// Evidence is what was found beside an artifact: bytes and annotations of one
// layer, trusted for nothing.
type Evidence struct {
	Format      Format
	Payload     []byte            // the layer's bytes
	Annotations map[string]string // the layer's annotations; a bundle needs none
	Origin      string            // where it was found, for messages only
}

// Bounds on evidence. A layer's annotations come from a manifest, which is
// bounded too; an SBOM attestation of a large program takes a few MiB.
const (
	// MaxPayload is the largest accepted Evidence.Payload, in bytes. Reading one
	// takes several times as much memory.
	MaxPayload = 8 << 20
	// maxAnnotation is the largest accepted value of an annotation, in bytes.
	maxAnnotation = 512 << 10
	// maxSimple is the largest payload of a simple signature, in bytes.
	maxSimple = 1 << 20
	// maxValues bounds the JSON values of an envelope, and those of the subjects of
	// a statement.
	maxValues = 10_000
)

func (ev Evidence) check() error {
	if ev.Format < FormatSimpleSigning || ev.Format > FormatBundle {
		return because(ErrUnsupportedFormat, "%s", ev.Format)
	}
	if len(ev.Payload) == 0 {
		return because(ErrMalformed, "empty payload")
	}
	if len(ev.Payload) > MaxPayload {
		return because(ErrMalformed, "payload of %d bytes, more than %d", len(ev.Payload), MaxPayload)
	}
	for k, v := range ev.Annotations {
		if len(v) > maxAnnotation {
			return because(ErrMalformed, "annotation %q of %d bytes, more than %d", k, len(v), maxAnnotation)
		}
	}
	return nil
}
