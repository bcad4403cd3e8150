package plugintest

import (
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// SignatureTag is where cosign 2 keeps signatures of a digest.
func SignatureTag(d digest.Digest) string { return trusttest.Tag(d, "sig") }

// AttestationTag is where cosign 2 keeps attestations of a digest.
func AttestationTag(d digest.Digest) string { return trusttest.Tag(d, "att") }

// Sign puts a cosign 2 signature beside a subject.
func Sign(tb testing.TB, to Target, key *trusttest.Key, subject ocispec.Descriptor) {
	tb.Helper()
	PutLegacy(tb, to, SignatureTag(subject.Digest), key.Sign(tb, subject.Digest))
}

// PutLegacy puts evidence under a tag of cosign 2.
func PutLegacy(tb testing.TB, to Target, tag string, layers ...trusttest.Layer) {
	tb.Helper()
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
	m.Config = PushBlob(tb, to, ocispec.MediaTypeImageConfig, []byte(`{"architecture":"","os":"","rootfs":{"type":"layers","diff_ids":[]}}`))
	for _, layer := range layers {
		desc := PushBlob(tb, to, layer.MediaType, layer.Payload)
		desc.Annotations = layer.Annotations
		m.Layers = append(m.Layers, desc)
	}
	PushJSON(tb, to, ocispec.MediaTypeImageManifest, m, tag)
}

// Refer hangs a document off a subject.
func Refer(tb testing.TB, to Target, subject ocispec.Descriptor, layer trusttest.Layer) ocispec.Descriptor {
	tb.Helper()
	blob := PushBlob(tb, to, layer.MediaType, layer.Payload)
	empty, content := artifact.EmptyConfig()
	push(tb, to, empty, content)
	desc, content, err := artifact.EncodeReferrer(artifact.ReferrerInput{
		Subject:      ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
		ArtifactType: layer.MediaType, Layer: blob, Annotations: layer.Annotations,
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := to.PushManifest(tb.Context(), desc, content); err != nil {
		tb.Fatal(err)
	}
	return desc
}
