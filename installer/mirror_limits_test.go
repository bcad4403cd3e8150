package installer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/plugintest"
)

// crowd is a layout in which far too many referrers hang off the index, each with
// blobs of its own.
type crowd struct {
	installer.Source
	about     digest.Digest
	referrers []ocispec.Descriptor
	content   map[digest.Digest][]byte
}

func newCrowd(t *testing.T, from installer.Source, about digest.Digest, size int) *crowd {
	t.Helper()
	c := &crowd{Source: from, about: about, content: map[digest.Digest][]byte{}}
	for n := range size {
		blob := func(kind string) ocispec.Descriptor {
			return ocispec.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromString(fmt.Sprint(kind, n)), Size: 1}
		}
		content, err := json.Marshal(ocispec.Manifest{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
			Config: blob("config"), Layers: []ocispec.Descriptor{blob("a"), blob("b"), blob("c"), blob("d")},
		})
		if err != nil {
			t.Fatal(err)
		}
		desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(content), Size: int64(len(content))}
		c.content[desc.Digest] = content
		c.referrers = append(c.referrers, desc)
	}
	return c
}

func (c *crowd) Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	switch {
	case subject.Digest == c.about:
		return c.referrers, nil
	case c.content[subject.Digest] != nil:
		return nil, nil
	}
	return c.Source.Referrers(ctx, subject)
}

func (c *crowd) FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	if content, ok := c.content[desc.Digest]; ok {
		return content, nil
	}
	return c.Source.FetchAll(ctx, desc, limit)
}

// tally is a destination that counts.
type tally struct{ manifests int }

func (*tally) Resolve(context.Context, string) (ocispec.Descriptor, error) {
	return ocispec.Descriptor{}, installer.ErrNotFound
}

func (*tally) PushBlob(context.Context, ocispec.Descriptor, func() (io.ReadCloser, error)) (bool, error) {
	return true, nil
}

func (d *tally) PushManifest(context.Context, ocispec.Descriptor, []byte, ...string) error {
	d.manifests++
	return nil
}

// TestMirrorLimit holds that the number of manifests is bounded, whatever number
// of blobs there is beside them.
func TestMirrorLimit(t *testing.T) {
	t.Parallel()
	const limit = 4096
	for name, test := range map[string]struct {
		referrers int
		want      error
	}{
		"few": {10, nil}, "many": {limit - 4, nil}, "too many": {limit + 10, installer.ErrLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := newLayout(t)
			p := plugintest.Publish(t, layout, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
			source := newCrowd(t, layout, p.Index.Digest, test.referrers)
			i := newInstaller(t, installer.UnsafeNoVerification(), installer.WithSource(
				func(context.Context, installer.Reference) (installer.Source, error) { return source, nil }))
			to := &tally{}
			done, err := i.Mirror(t.Context(), reference(t, alias), to, installer.MirrorOptions{})
			if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || to.manifests > limit+1 {
				t.Errorf("%d manifests, %v; want %v", to.manifests, err, test.want)
			}
			if err == nil && done.Manifests != test.referrers+4 {
				t.Errorf("counted %d manifests; want %d", done.Manifests, test.referrers+4)
			}
		})
	}
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
