package trusttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Pusher is a repository or a layout that evidence is put into.
type Pusher interface {
	PushBlob(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) (bool, error)
	PushManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error
}

// Attach puts evidence beside a subject as cosign does: legacy signatures in
// one manifest under the tag `.sig`, legacy attestations in one under `.att`,
// each bundle in a referrer of its own. It replaces earlier tags.
func Attach(tb testing.TB, to Pusher, subject ocispec.Descriptor, layers ...Layer) {
	tb.Helper()
	var sigs, atts []Layer
	for _, l := range layers {
		switch l.MediaType {
		case MediaTypeSimpleSigning:
			sigs = append(sigs, l)
		case MediaTypeDSSE:
			atts = append(atts, l)
		default:
			AttachReferrer(tb, to, subject, l)
		}
	}
	for suffix, group := range map[string][]Layer{"sig": sigs, "att": atts} {
		if len(group) > 0 {
			push(tb, to, imageManifest(tb, to, group), Tag(subject.Digest, suffix))
		}
	}
}

// Tag is the tag under which legacy evidence about a digest lies; suffix is
// "sig" or "att".
func Tag(d digest.Digest, suffix string) string {
	return strings.Replace(d.String(), ":", "-", 1) + "." + suffix
}

// AttachReferrer puts one layer into a referrer of the subject.
func AttachReferrer(tb testing.TB, to Pusher, subject ocispec.Descriptor, l Layer) ocispec.Descriptor {
	tb.Helper()
	return push(tb, to, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: l.MediaType,
		Config:  blob(tb, to, ocispec.MediaTypeEmptyJSON, []byte("{}")),
		Layers:  []ocispec.Descriptor{layer(tb, to, l)},
		Subject: &ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
	})
}

// PushIndex puts an index with manifests for linux/amd64 and darwin/arm64 into
// a repository, with content of its own for every name, and returns their
// descriptors. It is something to sign, not a plugin.
func PushIndex(tb testing.TB, to Pusher, name string, tags ...string) (index ocispec.Descriptor, manifests []ocispec.Descriptor) {
	tb.Helper()
	for _, p := range []ocispec.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "darwin", Architecture: "arm64"}} {
		m := imageManifest(tb, to, []Layer{{MediaType: ocispec.MediaTypeImageLayer, Payload: fmt.Appendf(nil, "%s for %s/%s\n", name, p.OS, p.Architecture)}})
		d := push(tb, to, m)
		d.Platform = &p
		manifests = append(manifests, d)
	}
	return push(tb, to, ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: manifests,
	}, tags...), manifests
}

func imageManifest(tb testing.TB, to Pusher, layers []Layer) ocispec.Manifest {
	tb.Helper()
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
	config := ocispec.Image{RootFS: ocispec.RootFS{Type: "layers"}}
	for _, l := range layers {
		d := layer(tb, to, l)
		m.Layers = append(m.Layers, d)
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, d.Digest)
	}
	m.Config = blob(tb, to, ocispec.MediaTypeImageConfig, encode(tb, config))
	return m
}

func layer(tb testing.TB, to Pusher, l Layer) ocispec.Descriptor {
	tb.Helper()
	d := blob(tb, to, l.MediaType, l.Payload)
	d.Annotations = l.Annotations
	return d
}

func blob(tb testing.TB, to Pusher, mediaType string, content []byte) ocispec.Descriptor {
	tb.Helper()
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	if _, err := to.PushBlob(tb.Context(), d, open); err != nil {
		tb.Fatal(err)
	}
	return d
}

func push(tb testing.TB, to Pusher, manifest any, tags ...string) ocispec.Descriptor {
	tb.Helper()
	content, err := json.Marshal(manifest)
	if err != nil {
		tb.Fatal(err)
	}
	d := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(content), Size: int64(len(content))}
	if _, ok := manifest.(ocispec.Index); ok {
		d.MediaType = ocispec.MediaTypeImageIndex
	}
	if err := to.PushManifest(tb.Context(), d, content, tags...); err != nil {
		tb.Fatal(err)
	}
	return d
}
