package packager_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// TestReproducible is INTEROP C29: it packages the same executables under everything that differs
// between two machines: folder, file times, modes as other umasks leave them,
// the order in which files were made, their owner (where the test may change it), time zone, number of processors, and how
// the folder is named.
func TestReproducible(t *testing.T) {
	t.Parallel()
	platforms := []string{"linux/amd64", "linux/arm64", "windows/amd64"}
	one := sampleplugin.Dist(t, "1.0.0", platforms...)
	two := filepath.Join(t.TempDir(), "a folder with spaces", "ü")
	slices.Reverse(platforms)
	for _, dir := range []string{one, two} {
		for i, p := range platforms {
			name := "plugin"
			if p == "windows/amd64" {
				name = "plugin.exe"
			}
			companion := os.FileMode(0o644)
			if dir == two {
				companion = 0o600
				sampleplugin.Copy(t, sampleplugin.Build(t, p, "1.0.0"), filepath.Join(dir, p, name), 0o700)
			}
			for _, extra := range []string{"zz.txt", "LICENSE", "ä"} {
				sampleplugin.Write(t, filepath.Join(dir, p, extra), []byte(extra), companion)
				if os.Geteuid() == 0 && dir == two {
					if err := os.Chown(filepath.Join(dir, p, extra), 1234, 5678); err != nil {
						t.Fatal(err)
					}
				}
				when := time.Unix(int64(1000*i+len(dir)), 0)
				if err := os.Chtimes(filepath.Join(dir, p, extra), when, when); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	metaTwo := metadata()
	metaTwo.Created = metaTwo.Created.In(time.FixedZone("far", 9*3600)).Add(300 * time.Millisecond)
	var digests []digest.Digest
	var layouts [][]string
	for _, c := range []struct {
		dir      string
		meta     packager.Metadata
		parallel int
	}{{one, metadata(), 1}, {two, metaTwo, 3}, {one + "/./", metadata(), 2}} {
		out := filepath.Join(t.TempDir(), "layout")
		packed, err := packager.Pack(t.Context(), scan(t, c.dir), version(t, "1.0.0"), out, packager.PackOptions{Metadata: c.meta, Parallel: c.parallel})
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, packed.Digest)
		index, err := os.ReadFile(filepath.Join(out, ocispec.ImageIndexFile))
		if err != nil {
			t.Fatal(err)
		}
		blobs, err := filepath.Glob(filepath.Join(out, "blobs", "sha256", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range blobs {
			blobs[i] = filepath.Base(blobs[i])
		}
		layouts = append(layouts, append(blobs, string(index)))
	}
	for i := range digests {
		if digests[i] != digests[0] {
			t.Errorf("index digests differ: %v", digests)
		}
		if diff := cmp.Diff(layouts[0], layouts[i]); diff != "" {
			t.Errorf("blobs differ, bills of materials among them:\n%s", diff)
		}
	}
}

// TestGoldenDigest notices when an update of the compressor, of the tar writer
// or of an encoding changes what is published for the same input.
func TestGoldenDigest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/plugin"), sampleplugin.ELF(), 0o755)
	_, packed := pack(t, "1.0.0", scan(t, dir))
	const layer, index = "sha256:88c4a65096ac70589c9554791ecb77c3f053470aaa60cb39c551e31b76f97fa5", "sha256:f6237da54156a2aa7dd7116a9a0fd5dfa321c690cb8b77f66878c94b3b7dc808"
	if packed.Platforms[0].Layer != layer || packed.Digest != index {
		t.Errorf("layer %s, index %s", packed.Platforms[0].Layer, packed.Digest)
	}
}

// TestUnknownTimeIsNotClaimed: 1970 would pass for old enough wherever a policy
// asks for an age.
func TestUnknownTimeIsNotClaimed(t *testing.T) {
	t.Parallel()
	dir, layout := t.TempDir(), filepath.Join(t.TempDir(), "layout")
	sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/plugin"), sampleplugin.ELF(), 0o755)
	if _, err := packager.Pack(t.Context(), scan(t, dir), version(t, "1.0.0"), layout, packager.PackOptions{}); err != nil {
		t.Fatal(err)
	}
	source, err := packager.OpenLayout(t.Context(), layout)
	if err != nil {
		t.Fatal(err)
	}
	report, err := packager.Inspect(t.Context(), source, "1.0.0", packager.InspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if created, ok := report.Annotations[ocispec.AnnotationCreated]; ok {
		t.Errorf("created %s", created)
	}
}

// TestAnnouncedExecutable holds that each entry of the index says which
// executable its layer has.
func TestAnnouncedExecutable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/plugin"), sampleplugin.ELF(), 0o755)
	layout, packed := pack(t, "1.0.0", scan(t, dir))
	content, err := os.ReadFile(filepath.Join(layout, "blobs", "sha256", packed.Digest.Encoded()))
	if err != nil {
		t.Fatal(err)
	}
	index, err := artifact.DecodeIndex(ocispec.MediaTypeImageIndex, content)
	if err != nil {
		t.Fatal(err)
	}
	got := index.Manifests[0].Annotations[artifact.AnnotationExecutable]
	if want := digest.FromBytes(sampleplugin.ELF()).String(); got != want {
		t.Errorf("announced %q; want %s", got, want)
	}
}

// entry is what matters of a tar entry.
type entry struct {
	Name     string
	Type     byte
	Mode     int64
	UID, GID int
	Time     int64
	Record   string
}

// TestLayerEntries looks into the layers. INTEROP C28: that of Windows needs no
// base image, and so no network. What is executable there goes by the ends of
// names, whatever the files' modes where the layer is made.
func TestLayerEntries(t *testing.T) {
	t.Parallel()
	dir := sampleplugin.Dist(t, "1.0.0", "linux/amd64", "windows/amd64")
	sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/NOTES"), []byte("x"), 0o660)
	sampleplugin.Write(t, filepath.Join(dir, "windows/amd64/NOTES"), []byte("x"), 0o755)
	sampleplugin.Write(t, filepath.Join(dir, "windows/amd64/helper.dll"), []byte("x"), 0o644)
	layout, packed := pack(t, "1.0.0", scan(t, dir))
	when := metadata().Created.Unix()
	const rawsd = "AQAAgBQAAAAkAAAAAAAAAAAAAAABAgAAAAAABSAAAAAhAgAAAQIAAAAAAAUgAAAAIQIAAA=="
	want := map[string][]entry{
		"linux/amd64": {
			{"plugin/", tar.TypeDir, 0o755, 0, 0, when, ""},
			{"plugin/NOTES", tar.TypeReg, 0o644, 0, 0, when, ""},
			{"plugin/plugin", tar.TypeReg, 0o755, 0, 0, when, ""},
		},
		"windows/amd64": {
			{"Files/", tar.TypeDir, 0o555, 0, 0, when, ""},
			{"Hives/", tar.TypeDir, 0o555, 0, 0, when, ""},
			{"Files/plugin/", tar.TypeDir, 0o755, 0, 0, when, ""},
			{"Files/plugin/NOTES", tar.TypeReg, 0o644, 0, 0, when, ""},
			{"Files/plugin/helper.dll", tar.TypeReg, 0o755, 0, 0, when, rawsd},
			{"Files/plugin/plugin.exe", tar.TypeReg, 0o755, 0, 0, when, rawsd},
		},
	}
	for _, p := range packed.Platforms {
		raw, err := os.ReadFile(filepath.Join(layout, "blobs", "sha256", p.Layer.Encoded()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[p.Platform], readLayer(t, raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.Platform, diff)
		}
	}
}

func readLayer(t testing.TB, raw []byte) []entry {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if zip.Name != "" || !zip.ModTime.IsZero() {
		t.Errorf("gzip header has a name or time: %+v", zip.Header)
	}
	var entries []entry
	r := tar.NewReader(zip)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry{h.Name, h.Typeflag, h.Mode, h.Uid, h.Gid, h.ModTime.Unix(), h.PAXRecords["MSWINDOWS.rawsd"]})
	}
}

// TestImageIsWhatRuntimesRead is INTEROP C30 and C8: it checks config and manifest against each other.
func TestImageIsWhatRuntimesRead(t *testing.T) {
	t.Parallel()
	layout, packed := pack(t, "1.2.3-rc.1", scan(t, sampleplugin.Dist(t, "1.2.3-rc.1", "linux/armv7", "windows/arm64")))
	source, err := packager.OpenLayout(t.Context(), layout)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packed.Platforms {
		desc, err := source.Resolve(t.Context(), p.Digest.String())
		if err != nil {
			t.Fatal(err)
		}
		content, err := source.FetchAll(t.Context(), desc, artifact.ManifestLimit)
		if err != nil {
			t.Fatal(err)
		}
		m, err := artifact.DecodeManifest(desc.MediaType, content)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := source.FetchAll(t.Context(), m.Config, artifact.ManifestLimit)
		if err != nil {
			t.Fatal(err)
		}
		config, err := artifact.DecodeConfig(raw)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := artifact.PlatformFromOCI(config.Platform)
		if err != nil || parsed.String() != p.Platform {
			t.Errorf("config is for %v (%v), manifest for %s", parsed, err, p.Platform)
		}
		layer, err := os.ReadFile(filepath.Join(layout, "blobs", "sha256", p.Layer.Encoded()))
		if err != nil {
			t.Fatal(err)
		}
		zip, err := gzip.NewReader(bytes.NewReader(layer))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(zip)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]digest.Digest{digest.FromBytes(plain)}, config.RootFS.DiffIDs); diff != "" {
			t.Errorf("diff IDs (-want +got):\n%s", diff)
		}
		if !slices.Contains(config.Config.Env, "FLEETING_PLUGIN_PKG_VERSION=1.2.3-rc.1") {
			t.Errorf("environment: %v", config.Config.Env)
		}
		if got := m.Layers[0].Annotations["com.gitlab.fleeting.layer"]; got != "1.2.3-rc.1" {
			t.Errorf("layer annotation: %q", got)
		}
		if m.Layers[0].MediaType != ocispec.MediaTypeImageLayerGzip || config.Created == nil || !config.Created.Equal(metadata().Created) {
			t.Errorf("layer type %s, created %v", m.Layers[0].MediaType, config.Created)
		}
	}
}

func TestPackReplacesOnlyLayouts(t *testing.T) {
	t.Parallel()
	scanned := scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64"))
	parent := t.TempDir()
	out := filepath.Join(parent, "layout")
	for _, v := range []string{"1.0.0", "1.0.1"} {
		if _, err := packager.Pack(t.Context(), scanned, version(t, v), out, packager.PackOptions{}); err != nil {
			t.Fatal(err)
		}
		source, err := packager.OpenLayout(t.Context(), out)
		if err != nil {
			t.Fatal(err)
		}
		tags, err := source.Tags(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{v}, tags); diff != "" {
			t.Errorf("tags (-want +got):\n%s", diff)
		}
	}
	full := filepath.Join(parent, "full")
	sampleplugin.Write(t, filepath.Join(full, "precious"), []byte("x"), 0o600)
	if _, err := packager.Pack(t.Context(), scanned, version(t, "1.0.0"), full, packager.PackOptions{}); !errors.Is(err, packager.ErrExists) {
		t.Errorf("error = %v, want ErrExists", err)
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	for _, m := range []packager.Metadata{{MinimumRunner: "new"}, {Protocol: func() *int { n := -1; return &n }()}} {
		if _, err := packager.Pack(t.Context(), scanned, version(t, "1.0.0"), out, packager.PackOptions{Metadata: m}); !errors.Is(err, dist.ErrInput) {
			t.Errorf("%+v: error = %v", m, err)
		}
	}
	if _, err := packager.Pack(t.Context(), scanned, packager.Version{}, out, packager.PackOptions{}); !errors.Is(err, packager.ErrVersion) {
		t.Errorf("no version: %v", err)
	}
}

// TestMetadataComesFromTheEnvironment also shows what wins.
func TestMetadataComesFromTheEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"GITLAB_CI": "true", "CI_PROJECT_URL": "https://u:secret@gitlab.example.com/g/p", "CI_COMMIT_SHA": "abc", "CI_PROJECT_NAME": "p",
		"CI_PROJECT_DESCRIPTION": "a plugin", "CI_PROJECT_ROOT_NAMESPACE": "g", "SOURCE_DATE_EPOCH": "1700000000",
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	got, err := packager.DetectMetadata(lookup)
	if err != nil {
		t.Fatal(err)
	}
	want := packager.Metadata{
		Title: "own", Description: "a plugin", Revision: "abc", Source: "https://gitlab.example.com/g/p", URL: "https://gitlab.example.com/g/p",
		Vendor: "g", Created: time.Unix(1700000000, 0),
	}
	if diff := cmp.Diff(want, packager.Metadata{Title: "own"}.Or(got)); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	for _, epoch := range []string{"yesterday", "-1"} {
		env["SOURCE_DATE_EPOCH"] = epoch
		if _, err := packager.DetectMetadata(lookup); !errors.Is(err, dist.ErrInput) {
			t.Errorf("SOURCE_DATE_EPOCH=%s: error = %v", epoch, err)
		}
	}
	github, err := packager.DetectMetadata(githubEnv)
	if err != nil || github.Source != "https://github.com/lab-org/lab-plugin" || github.Revision == "" {
		t.Errorf("github: %+v, %v", github, err)
	}
}
