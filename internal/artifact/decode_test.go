package artifact_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

const someDigest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func entry(extra string) string {
	return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":2%s}`, ocispec.MediaTypeImageManifest, someDigest, extra)
}

func TestDecodeIndexRefuses(t *testing.T) {
	t.Parallel()
	index := ocispec.MediaTypeImageIndex
	for name, c := range map[string]struct{ mediaType, doc string }{
		"not JSON":                {index, `nonsense`},
		"trailing data":           {index, `{"schemaVersion":2,"manifests":[]} {}`},
		"schema version 1":        {index, `{"schemaVersion":1,"manifests":[]}`},
		"media type of another":   {index, `{"schemaVersion":2,"mediaType":"` + ocispec.MediaTypeImageManifest + `","manifests":[]}`},
		"manifest asked as index": {ocispec.MediaTypeImageManifest, `{"schemaVersion":2,"manifests":[]}`},
		"index and manifest":      {index, `{"schemaVersion":2,"manifests":[],"layers":[]}`},
		"index with config":       {index, `{"schemaVersion":2,"manifests":[],"config":{}}`},
		"bad digest":              {index, `{"schemaVersion":2,"manifests":[{"mediaType":"x","digest":"sha256:00","size":1}]}`},
		"md5":                     {index, `{"schemaVersion":2,"manifests":[{"mediaType":"x","digest":"md5:d41d8cd98f00b204e9800998ecf8427e","size":1}]}`},
		"negative size":           {index, `{"schemaVersion":2,"manifests":[{"mediaType":"x","digest":"` + someDigest + `","size":-1}]}`},
		"no media type":           {index, `{"schemaVersion":2,"manifests":[{"digest":"` + someDigest + `","size":1}]}`},
		"too many entries":        {index, `{"schemaVersion":2,"manifests":[` + strings.Repeat(entry("")+",", 1000) + entry("") + `]}`},
		"too large":               {index, `{"schemaVersion":2,"manifests":[]` + strings.Repeat(" ", artifact.ManifestLimit) + `}`},
	} {
		if _, err := artifact.DecodeIndex(c.mediaType, []byte(c.doc)); !errors.Is(err, artifact.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeIndexTakesEntriesWithoutPlatform(t *testing.T) {
	t.Parallel()
	doc := `{"schemaVersion":2,"manifests":[` + entry("") + `,` + entry(`,"platform":{"os":"linux","architecture":"arm64"}`) + `]}`
	for _, mediaType := range []string{ocispec.MediaTypeImageIndex, artifact.MediaTypeDockerManifestList} {
		index, err := artifact.DecodeIndex(mediaType, []byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		if len(index.Manifests) != 2 || index.Manifests[0].Platform != nil {
			t.Errorf("%+v", index)
		}
	}
}

func TestEncodedDocumentsDecode(t *testing.T) {
	t.Parallel()
	platform, err := artifact.ParsePlatform("windows/amd64")
	if err != nil {
		t.Fatal(err)
	}
	diffID := digest.FromString("layer")
	config, configBytes, err := artifact.EncodeConfig(artifact.ConfigInput{
		Platform: platform, Version: "1.2.3", DiffIDs: []digest.Digest{diffID}, Created: time.Unix(1700000000, 5),
	})
	if err != nil {
		t.Fatal(err)
	}
	img, err := artifact.DecodeConfig(configBytes)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/plugin/plugin.exe"}
	if diff := cmp.Diff(want, img.Config.Entrypoint); diff != "" || len(img.History) != 1 || img.RootFS.DiffIDs[0] != diffID {
		t.Errorf("config %+v %s", img, diff)
	}
	layer := artifact.Describe(ocispec.MediaTypeImageLayerGzip, []byte("layer"))
	layer.Annotations = map[string]string{artifact.AnnotationLayer: "1.2.3"}
	desc, b, err := artifact.EncodeManifest(artifact.ManifestInput{Config: config, Layers: []ocispec.Descriptor{layer}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := artifact.DecodeManifest(desc.MediaType, b)
	if err != nil {
		t.Fatal(err)
	}
	if p := artifact.PluginLayers(m); len(p) != 1 || p[0].Version != "1.2.3" || p[0].Descriptor.Digest != layer.Digest {
		t.Errorf("plugin layers %+v", p)
	}
	empty, b, err := artifact.EncodeIndex(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := artifact.DecodeIndex(empty.MediaType, b); err != nil || !strings.Contains(string(b), `"manifests":[]`) {
		t.Errorf("%s: %v", b, err)
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	zero := 0
	in := artifact.Metadata{Protocol: &zero, Library: "v0.0.0-x", MinimumRunner: "17.9"}
	s, err := in.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := artifact.DecodeMetadata(s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "[]", "{} {}", strings.Repeat(" ", 20<<10)} {
		if _, err := artifact.DecodeMetadata(bad); !errors.Is(err, artifact.ErrInvalid) {
			t.Errorf("DecodeMetadata(%.10q): %v", bad, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"manifests":[` + entry("") + `]}`))
	f.Add([]byte(`{"schemaVersion":2,"config":` + entry("") + `,"layers":[` + entry("") + `]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, indexErr := artifact.DecodeIndex(ocispec.MediaTypeImageIndex, b)
		_, manifestErr := artifact.DecodeManifest(ocispec.MediaTypeImageManifest, b)
		if indexErr == nil && manifestErr == nil {
			t.Errorf("one document reads as an index and as a manifest: %s", b)
		}
		_, _ = artifact.DecodeConfig(b)
	})
}
