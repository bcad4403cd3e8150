package ociregistry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

func TestLayoutIngest(t *testing.T) {
	t.Parallel()
	l, err := ociregistry.CreateLayout(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	desc, err := l.Ingest("text/plain", func(w io.Writer) error {
		_, err := io.WriteString(w, "hello")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := l.FetchAll(t.Context(), desc, 100); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	boom := errors.New("boom")
	if _, err := l.Ingest("text/plain", func(io.Writer) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("failing writer: %v", err)
	}
}

func TestOpenLayoutRefusesOtherFolders(t *testing.T) {
	t.Parallel()
	if _, err := ociregistry.OpenLayout(t.Context(), t.TempDir()); !errors.Is(err, ociregistry.ErrNotFound) {
		t.Errorf("empty folder: %v", err)
	}
}

// writeLayout makes a layout whose index.json has the entries, and blobs that are
// files of that content.
func writeLayout(t *testing.T, entries []ocispec.Descriptor, blobs ...string) string {
	t.Helper()
	dir := t.TempDir()
	index, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, Manifests: entries})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{ocispec.ImageLayoutFile: `{"imageLayoutVersion":"1.0.0"}`, ocispec.ImageIndexFile: string(index)}
	for _, content := range blobs {
		files["blobs/sha256/"+digest.FromString(content).Encoded()] = content
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func describe(mediaType, content string) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromString(content), Size: int64(len(content))}
}

// TestHostileLayouts holds that a layout of someone else's costs no more than
// its bounds, and is an error where what is in it cannot be read.
func TestHostileLayouts(t *testing.T) {
	t.Parallel()
	const manifest, index = ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex
	huge := describe(manifest, "huge")
	huge.Size = 1 << 40
	negative := describe(manifest, "negative")
	negative.Size = -1
	wide := `{"schemaVersion":2,"manifests":[` + strings.TrimSuffix(strings.Repeat(`{},`, 200_000), ",") + `]}`
	deep := `{"schemaVersion":2,"x":` + strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100) + `}`
	for name, c := range map[string]struct {
		entries []ocispec.Descriptor
		blobs   []string
		want    error
	}{
		"a manifest of a terabyte":         {[]ocispec.Descriptor{huge}, []string{"huge"}, ociregistry.ErrTooLarge},
		"a manifest of less than no bytes": {[]ocispec.Descriptor{negative}, []string{"negative"}, ociregistry.ErrAnswer},
		"another size":                     {[]ocispec.Descriptor{{MediaType: manifest, Digest: digest.FromString("x"), Size: 2}}, []string{"x"}, ociregistry.ErrDigestMismatch},
		"a digest that is a path":          {[]ocispec.Descriptor{{MediaType: manifest, Digest: "sha256:../../../etc/passwd", Size: 1}}, nil, ociregistry.ErrAnswer},
		"an index of 200,000":              {[]ocispec.Descriptor{describe(index, wide)}, []string{wide}, ociregistry.ErrTooLarge},
		"100 deep":                         {[]ocispec.Descriptor{describe(index, deep)}, []string{deep}, ociregistry.ErrTooLarge},
		"no JSON":                          {[]ocispec.Descriptor{describe(manifest, "{")}, []string{"{"}, ociregistry.ErrAnswer},
		"60,000 entries":                   {slices.Repeat([]ocispec.Descriptor{describe(manifest, "{}")}, 60_000), nil, ociregistry.ErrTooLarge},
		"what is not there":                {[]ocispec.Descriptor{describe(manifest, "{}")}, nil, nil},
	} {
		layout, err := ociregistry.OpenLayout(t.Context(), writeLayout(t, c.entries, c.blobs...))
		if err != nil {
			t.Fatal(err)
		}
		if found, err := layout.Referrers(t.Context(), describe(manifest, "subject")); len(found) > 0 || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, found, err, c.want)
		}
	}
}

// TestLayoutReferrers holds that referrers are found wherever an index leads to,
// what is pushed afterwards included.
func TestLayoutReferrers(t *testing.T) {
	t.Parallel()
	const manifest, index = ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex
	subject := describe(manifest, `{"schemaVersion":2}`)
	about := func(name string) string {
		return fmt.Sprintf(`{"schemaVersion":2,"mediaType":"`+manifest+`","artifactType":"a/b","annotations":{"n":%q},"subject":{"mediaType":%q,"digest":%q,"size":%d}}`, name, manifest, subject.Digest, subject.Size)
	}
	list := fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":%q,"digest":%q,"size":%d}]}`, manifest, digest.FromString(about("nested")), len(about("nested")))
	outer := fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":%q,"digest":%q,"size":%d}]}`, index, digest.FromString(list), len(list))
	layout, err := ociregistry.OpenLayout(t.Context(), writeLayout(t,
		[]ocispec.Descriptor{describe(index, outer), describe(manifest, about("listed"))}, outer, list, about("nested"), about("listed")))
	if err != nil {
		t.Fatal(err)
	}
	pushed := describe(manifest, about("pushed"))
	for _, names := range [][]string{{"nested", "listed"}, {"nested", "listed", "pushed"}} {
		var want, got []digest.Digest
		for _, name := range names {
			want = append(want, digest.FromString(about(name)))
		}
		slices.Sort(want)
		found, err := layout.Referrers(t.Context(), subject)
		for _, desc := range found {
			got = append(got, desc.Digest)
			if desc.ArtifactType != "a/b" {
				t.Errorf("artifact type %q", desc.ArtifactType)
			}
		}
		if err != nil || !slices.Equal(want, got) {
			t.Errorf("%v: found %v, %v", names, got, err)
		}
		if err := layout.PushManifest(t.Context(), pushed, []byte(about("pushed"))); err != nil {
			t.Fatal(err)
		}
	}
	nested, err := layout.Resolve(t.Context(), digest.FromString(about("nested")).String())
	if err != nil || nested.Size != int64(len(about("nested"))) || nested.MediaType != manifest {
		t.Errorf("resolving what only an index names: %v, %v", nested, err)
	}
}
