package installer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// refer stores a manifest with a subject and any layers.
func refer(tb testing.TB, to plugintest.Target, subject ocispec.Descriptor, layers ...trusttest.Layer) ocispec.Descriptor {
	tb.Helper()
	subject = ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: "text/plain",
		Config: plugintest.PushBlob(tb, to, ocispec.MediaTypeEmptyJSON, []byte("{}")), Subject: &subject,
	}
	for _, layer := range layers {
		desc := plugintest.PushBlob(tb, to, layer.MediaType, layer.Payload)
		desc.Annotations = layer.Annotations
		m.Layers = append(m.Layers, desc)
	}
	return plugintest.PushJSON(tb, to, ocispec.MediaTypeImageManifest, m)
}

// TestMirrorVouchedFor copies what the required signer vouches for, and names what
// it leaves out.
func TestMirrorVouchedFor(t *testing.T) {
	t.Parallel()
	key, stranger := trusttest.NewKey(t), trusttest.NewKey(t)
	from, to := newLayout(t), newLayout(t)
	p := plugintest.Publish(t, from, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	index := p.Index
	const bill = `{"spdxVersion": "SPDX-2.3", "name": "<plugin>"}`
	spdx := func(content string) trusttest.Layer {
		return trusttest.Layer{MediaType: artifact.MediaTypeSPDX, Payload: []byte(content)}
	}
	attestation := key.Attest(t, index.Digest, trusttest.PredicateSPDX, bill)
	plugintest.PutLegacy(t, from, plugintest.SignatureTag(index.Digest), stranger.Sign(t, index.Digest), key.Sign(t, index.Digest))
	plugintest.PutLegacy(t, from, plugintest.AttestationTag(index.Digest), attestation, stranger.Attest(t, index.Digest, trusttest.PredicateSPDX, `{}`))
	bundle, about := key.SignBundle(t, index.Digest), key.SignBundle(t, p.Manifests["linux/amd64"].Digest)
	signed := refer(t, from, index, trusttest.Layer{MediaType: "text/plain", Payload: []byte("a signed text")})
	copied := map[string]ocispec.Descriptor{
		"a signature":                  refer(t, from, index, bundle),
		"a signature of a manifest":    refer(t, from, p.Manifests["linux/amd64"], about),
		"a bill that is attested":      refer(t, from, index, spdx(`{"spdxVersion":"SPDX-2.3","name":"\u003cplugin\u003e"}`)),
		"a text that is signed":        signed,
		"the signature of that text":   refer(t, from, signed, key.SignBundle(t, signed.Digest)),
		"an attestation in two places": refer(t, from, index, key.AttestBundle(t, index.Digest, trusttest.PredicateSLSA, `{}`)),
	}
	left := map[string]ocispec.Descriptor{
		"a stranger's signature":                refer(t, from, index, stranger.SignBundle(t, index.Digest)),
		"a signature of something else":         refer(t, from, index, about),
		"a signature, and more":                 refer(t, from, index, key.AttestBundle(t, index.Digest, "https://example.com/x", `{}`), spdx("and more")),
		"a bill that nobody attested":           refer(t, from, index, spdx(`{"spdxVersion":"SPDX-2.3","name":"other"}`)),
		"a bill that the stranger attested":     refer(t, from, index, spdx(`{}`)),
		"a text that a stranger signed":         refer(t, from, index, trusttest.Layer{MediaType: "text/plain", Payload: []byte("another text")}),
		"a signed referrer's unsigned referrer": refer(t, from, signed, trusttest.Layer{MediaType: "text/plain", Payload: []byte("deep")}),
		"what is large":                         refer(t, from, index, trusttest.Layer{MediaType: "application/octet-stream", Payload: make([]byte, 10<<20)}),
	}
	refer(t, from, left["a text that a stranger signed"], stranger.SignBundle(t, left["a text that a stranger signed"].Digest))
	i := newInstaller(t, trusting(t, key), installer.WithSource(installer.FromLayout(from.Name())))
	done, err := i.Mirror(t.Context(), reference(t, alias), to, installer.MirrorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, desc := range copied {
		if there, err := to.Exists(t.Context(), desc); !there || err != nil {
			t.Errorf("%s is not there: %v", name, err)
		}
	}
	for name, desc := range left {
		if there, _ := to.Exists(t.Context(), desc); there {
			t.Errorf("%s was copied", name)
		}
	}
	for tag, want := range map[string]string{
		plugintest.SignatureTag(index.Digest): string(key.Sign(t, index.Digest).Payload), plugintest.AttestationTag(index.Digest): string(attestation.Payload),
	} {
		if got := payloads(t, to, tag); !slices.Equal(got, []string{want}) {
			t.Errorf("%s has %q", tag, got)
		}
	}
	if done.Bytes > 1<<20 || len(done.LeftOut) != 10 {
		t.Errorf("%d bytes; left out: %+v", done.Bytes, done.LeftOut)
	}
}

// payloads are the layers of a manifest.
func payloads(t *testing.T, from installer.Source, tag string) []string {
	t.Helper()
	var all []string
	for _, layer := range layersOf(t, from, tag) {
		content, err := from.FetchAll(t.Context(), layer, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(content))
	}
	return all
}

func layersOf(t *testing.T, from installer.Source, tag string) []ocispec.Descriptor {
	t.Helper()
	desc, err := from.Resolve(t.Context(), tag)
	if err != nil {
		t.Fatal(err)
	}
	content, err := from.FetchAll(t.Context(), desc, artifact.ManifestLimit)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := artifact.DecodeManifest(desc.MediaType, content)
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Layers
}

// TestMirrorLimit holds that what strangers attach is not copied, and that looking
// at it has an end.
func TestMirrorLimit(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	for name, referrers := range map[string]int{"few": 10, "as many as are looked at": 256, "too many": 400} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := newLayout(t), newLayout(t)
			p := plugintest.Publish(t, from, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
			plugintest.Sign(t, from, key, p.Index)
			for n := range referrers {
				refer(t, from, p.Index, trusttest.Layer{MediaType: "text/plain", Payload: []byte(fmt.Sprint("text ", n))})
			}
			source := &counting{Source: from}
			i := newInstaller(t, trusting(t, key), installer.WithSource(
				func(context.Context, installer.Reference) (installer.Source, error) { return source, nil }))
			done, err := i.Mirror(t.Context(), reference(t, alias), to, installer.MirrorOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if done.Manifests != len(p.Manifests)+2 || len(done.LeftOut) != min(referrers, 257) || source.requests > 2500 {
				t.Errorf("copied %d manifests, left out %d, asked %d times", done.Manifests, len(done.LeftOut), source.requests)
			}
		})
	}
}

// counting is a source that counts what it is asked.
type counting struct {
	installer.Source
	requests int
}

func (c *counting) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	c.requests++
	return c.Source.Resolve(ctx, reference)
}

func (c *counting) FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	c.requests++
	return c.Source.FetchAll(ctx, desc, limit)
}

func (c *counting) Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	c.requests++
	return c.Source.Referrers(ctx, subject)
}

// TestMirrorKeepsSignatures holds that what a place has signed itself is there
// after a copy, and after another one.
func TestMirrorKeepsSignatures(t *testing.T) {
	t.Parallel()
	key, own := trusttest.NewKey(t), trusttest.NewKey(t)
	from := newLayout(t)
	p := plugintest.Publish(t, from, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	plugintest.Sign(t, from, key, p.Index)
	plugintest.PutLegacy(t, from, plugintest.AttestationTag(p.Index.Digest), key.Attest(t, p.Index.Digest, trusttest.PredicateSPDX, `{}`))
	signature, attestation := plugintest.SignatureTag(p.Index.Digest), plugintest.AttestationTag(p.Index.Digest)
	i := newInstaller(t, trusting(t, key), installer.WithSource(installer.FromLayout(from.Name())))
	registry := repository(t, registrytest.New(t).Host, "copy")
	for name, to := range map[string]interface {
		installer.Destination
		installer.Source
		plugintest.Target
	}{"layout": newLayout(t), "registry": registry} {
		plugintest.Sign(t, to, own, p.Index)
		plugintest.PutLegacy(t, to, attestation, own.Attest(t, p.Index.Digest, trusttest.PredicateSPDX, `{"by":"us"}`))
		var before []ocispec.Descriptor
		for range 2 {
			if _, err := i.Mirror(t.Context(), reference(t, alias), to, installer.MirrorOptions{}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all := append(layersOf(t, to, signature), layersOf(t, to, attestation)...)
			if len(all) != 4 || before != nil && !cmp.Equal(before, all) {
				t.Errorf("%s: %d pieces of evidence: %v", name, len(all), all)
			}
			before = all
		}
		for _, signer := range []*trusttest.Key{key, own} {
			verifier := newInstaller(t, trusting(t, signer), installer.WithSource(
				func(context.Context, installer.Reference) (installer.Source, error) { return to, nil }))
			if _, err := verifier.Verify(t.Context(), reference(t, alias)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestMirrorAddsNoSignatures holds that a copy is refused where signatures cannot
// be added to those that are there, before the version can be seen.
func TestMirrorAddsNoSignatures(t *testing.T) {
	t.Parallel()
	key, own := trusttest.NewKey(t), trusttest.NewKey(t)
	from := newLayout(t)
	p := plugintest.Publish(t, from, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	plugintest.Sign(t, from, key, p.Index)
	i := newInstaller(t, trusting(t, key), installer.WithSource(installer.FromLayout(from.Name())))
	immutable := newLayout(t)
	plugintest.Sign(t, immutable, own, p.Index)
	other := newLayout(t)
	plugintest.Publish(t, other, plugintest.Plugin{Version: "0.0.1", Body: "ELF"}, plugintest.SignatureTag(p.Index.Digest))
	for name, to := range map[string]*ociregistry.Layout{"a tag that does not move": immutable, "a tag on something else": other} {
		before, err := to.Resolve(t.Context(), plugintest.SignatureTag(p.Index.Digest))
		if err != nil {
			t.Fatal(err)
		}
		_, err = i.Mirror(t.Context(), reference(t, alias), unmoving{to}, installer.MirrorOptions{})
		if !errors.Is(err, installer.Reason("occupied")) {
			t.Errorf("%s: %v", name, err)
		}
		after, _ := to.Resolve(t.Context(), plugintest.SignatureTag(p.Index.Digest))
		if _, err := to.Resolve(t.Context(), "1.2.3"); before.Digest != after.Digest || !errors.Is(err, installer.ErrNotFound) {
			t.Errorf("%s: signatures moved to %s, the version is there: %v", name, after.Digest, err)
		}
	}
}

// unmoving is a destination that moves no tag.
type unmoving struct{ *ociregistry.Layout }

func (u unmoving) PushManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error {
	for _, tag := range tags {
		if there, err := u.Resolve(ctx, tag); err == nil && there.Digest != desc.Digest {
			return ociregistry.ErrImmutable
		}
	}
	return u.Layout.PushManifest(ctx, desc, content, tags...)
}

// TestMirrorForeignLayers leaves the layers of Windows' base images where they
// are, as the packager does, and takes those that only have a second place.
func TestMirrorForeignLayers(t *testing.T) {
	t.Parallel()
	from, to := newLayout(t), newLayout(t)
	urls := []string{"https://example.com/layer"}
	plugin := plugintest.PushBlob(t, from, ocispec.MediaTypeImageLayerGzip,
		plugintest.Gzip(t, plugintest.Tar(t, []plugintest.Entry{{Name: "plugin/" + program(), Body: "ELF"}})))
	plugin.URLs, plugin.Annotations = urls, map[string]string{artifact.AnnotationLayer: "1.2.3"}
	layers := []ocispec.Descriptor{plugin}
	for _, mediaType := range []string{
		"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
	} {
		layers = append(layers, ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromString(mediaType), Size: 1, URLs: urls})
	}
	image{config: hostConfig("/plugin/" + program()), layers: layers}.push(t, from, "1.2.3")
	i := newInstaller(t, installer.UnsafeNoVerification(), installer.WithSource(installer.FromLayout(from.Name())))
	if _, err := i.Mirror(t.Context(), reference(t, alias), to, installer.MirrorOptions{}); err != nil {
		t.Fatal(err)
	}
	copied := newInstaller(t, installer.UnsafeNoVerification(), installer.WithSource(installer.FromLayout(to.Name())))
	if _, err := copied.Install(t.Context(), reference(t, alias), installer.InstallOptions{}); err != nil {
		t.Errorf("from the mirror: %v", err)
	}
}
