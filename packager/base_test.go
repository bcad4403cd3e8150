package packager_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// pushJSON stores a document and returns its descriptor.
func pushJSON(t *testing.T, repo *ociregistry.Repository, mediaType string, manifest bool, v any, tags ...string) ocispec.Descriptor {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	desc := artifact.Describe(mediaType, raw)
	if manifest {
		err = repo.PushManifest(t.Context(), desc, raw, tags...)
	} else {
		_, err = repo.PushBlob(t.Context(), desc, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	return desc
}

// windowsBase publishes an image in Docker's formats for two builds of Windows;
// the second has a layer that stays at its origin.
func windowsBase(t *testing.T, repo *ociregistry.Repository) {
	t.Helper()
	var entries []map[string]any
	for i, build := range []string{"10.0.17763.1", "10.0.20348.1"} {
		layer := pushJSON(t, repo, artifact.MediaTypeDockerLayer, false, "layer of "+build)
		config := pushJSON(t, repo, artifact.MediaTypeDockerConfig, false, map[string]any{
			"architecture": "amd64", "os": "windows", "os.version": build, "config": map[string]any{"Env": []string{"BASE=" + build}},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest.String()}},
		})
		l := map[string]any{"mediaType": layer.MediaType, "digest": layer.Digest, "size": layer.Size}
		if i == 1 {
			l["mediaType"] = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
			l["urls"] = []string{"https://example.com/layer"}
		}
		m := pushJSON(t, repo, artifact.MediaTypeDockerManifest, true, map[string]any{
			"schemaVersion": 2, "mediaType": artifact.MediaTypeDockerManifest, "layers": []any{l},
			"config": map[string]any{"mediaType": config.MediaType, "digest": config.Digest, "size": config.Size},
		})
		entries = append(entries, map[string]any{
			"mediaType": m.MediaType, "digest": m.Digest, "size": m.Size,
			"platform": map[string]any{"os": "windows", "architecture": "amd64", "os.version": build},
		})
	}
	pushJSON(t, repo, artifact.MediaTypeDockerManifestList, true, map[string]any{
		"schemaVersion": 2, "mediaType": artifact.MediaTypeDockerManifestList, "manifests": entries,
	}, "ltsc")
}

func TestWindowsBase(t *testing.T) {
	t.Parallel()
	reg := registrytest.NewReferrers(t)
	base := repository(t, reg.Host+"/windows/base")
	windowsBase(t, base)
	opts := packager.PackOptions{
		Metadata: metadata(), WindowsBases: []packager.Base{{Reference: reg.Host + "/windows/base:ltsc", From: base}},
	}
	scanned := scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64", "windows/amd64"))
	repo := repository(t, reg.Host+"/demo")
	released, err := packager.Release(t.Context(), scanned, version(t, "1.0.0"), repo, packager.ReleaseOptions{PackOptions: opts})
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, p := range released.Platforms {
		platforms = append(platforms, p.Platform)
	}
	want := []string{"linux/amd64", "windows/amd64:10.0.17763.1", "windows/amd64:10.0.20348.1", "windows/amd64"}
	if diff := cmp.Diff(want, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	layout := filepath.Join(t.TempDir(), "layout")
	packed, err := packager.Pack(t.Context(), scanned, version(t, "1.0.0"), layout, opts)
	if err != nil || packed.Digest != released.Digest {
		t.Fatalf("packed %v, %v; released %s", packed, err, released.Digest)
	}
	other := repository(t, reg.Host+"/pushed")
	if _, err := packager.Push(t.Context(), layout, other, packager.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*ociregistry.Repository{repo, other} {
		checkBased(t, r, released.Platforms)
	}
	arm := scan(t, sampleplugin.Dist(t, "1.0.0", "windows/arm64"))
	if _, err := packager.Pack(t.Context(), arm, version(t, "1.0.0"), layout, opts); !errors.Is(err, dist.ErrInput) {
		t.Errorf("no base for arm64: error = %v", err)
	}
}

func checkBased(t *testing.T, repo *ociregistry.Repository, platforms []packager.PlatformResult) {
	t.Helper()
	for i, p := range platforms {
		desc, err := repo.Resolve(t.Context(), p.Digest.String())
		if err != nil {
			t.Fatal(err)
		}
		content, err := repo.FetchAll(t.Context(), desc, artifact.ManifestLimit)
		if err != nil {
			t.Fatal(err)
		}
		m, err := artifact.DecodeManifest(desc.MediaType, content)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := repo.FetchAll(t.Context(), m.Config, artifact.ManifestLimit)
		if err != nil {
			t.Fatal(err)
		}
		config, err := artifact.DecodeConfig(raw)
		if err != nil {
			t.Fatal(err)
		}
		based := i == 1 || i == 2
		wantLayers := 1
		if based {
			wantLayers = 2
		}
		if len(m.Layers) != wantLayers || len(config.RootFS.DiffIDs) != wantLayers || (config.OSVersion != "") != based {
			t.Errorf("%s: %d layers, %d diff IDs, os.version %q", p.Platform, len(m.Layers), len(config.RootFS.DiffIDs), config.OSVersion)
		}
		if m.Layers[0].MediaType != ocispec.MediaTypeImageLayerGzip && len(m.Layers[0].URLs) == 0 {
			t.Errorf("%s: first layer is %s", p.Platform, m.Layers[0].MediaType)
		}
		if len(m.Layers[0].URLs) == 0 {
			if there, err := repo.Exists(t.Context(), m.Layers[0]); err != nil || !there {
				t.Errorf("%s: layer of the base is not there: %v", p.Platform, err)
			}
		}
		if m.Layers[wantLayers-1].Digest != p.Layer {
			t.Errorf("%s: the plugin's layer is not the last", p.Platform)
		}
	}
}
