package trusttest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed" // for the fixture
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

//go:embed testdata/lab.tar.gz
var labArchive []byte

// The signer of the fixture's keyless samples. Its certificates have no SCT.
const (
	LabIssuer  = "http://127.0.0.1:5710/actions"
	LabSubject = "https://github.com/lab-org/lab-plugin/.github/workflows/release.yml@refs/tags/v1.2.3"
)

// LabSamples is the fixture: artifacts signed by real cosign 2.6.5, by cosign
// 3.1.3 and by our own signer against a private sigstore, in every format, and
// cases that must be refused. `make fixtures` writes it.
type LabSamples struct {
	files map[string][]byte
	all   []Sample
}

// Sample is one artifact of the fixture. Names that begin with neg- are to be
// refused, with ours- are by our own signer.
type Sample struct {
	Name     string        `json:"name"`
	Index    digest.Digest `json:"index"`
	Platform digest.Digest `json:"platform"` // the manifest for linux/amd64
}

// Lab reads the fixture.
func Lab(tb testing.TB) *LabSamples {
	tb.Helper()
	lab, err := readLab()
	if err != nil {
		tb.Fatal(err)
	}
	return lab
}

// readLab unpacks once: dozens of tests read the same bytes.
var readLab = sync.OnceValues(func() (*LabSamples, error) { //nolint:gochecknoglobals // a cache of a constant
	lab := &LabSamples{files: map[string][]byte{}}
	zipped, err := gzip.NewReader(bytes.NewReader(labArchive))
	if err != nil {
		return nil, err
	}
	for archive := tar.NewReader(zipped); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if lab.files[h.Name], err = io.ReadAll(archive); err != nil {
			return nil, err
		}
	}
	return lab, json.Unmarshal(lab.files["samples.json"], &lab.all)
})

// Samples lists the fixture, sorted by name.
func (l *LabSamples) Samples() []Sample { return slices.Clone(l.all) }

// Sample returns one artifact.
func (l *LabSamples) Sample(tb testing.TB, name string) Sample {
	tb.Helper()
	for _, s := range l.all {
		if s.Name == name {
			return s
		}
	}
	tb.Fatalf("no sample %q in the fixture", name)
	return Sample{}
}

// PublicKey is the key of the key-signed samples, or with other set that of
// the samples signed by another signer.
func (l *LabSamples) PublicKey(other bool) []byte {
	if other {
		return slices.Clone(l.files["other.pub"])
	}
	return slices.Clone(l.files["cosign.pub"])
}

// TrustedRoot is the trusted root of the private sigstore, in JSON: both logs
// and the timestamp authority, but no certificate log.
func (l *LabSamples) TrustedRoot() []byte { return slices.Clone(l.files["trusted_root.json"]) }

// TrustedRootWithoutLogs is the same without the logs.
func (l *LabSamples) TrustedRootWithoutLogs() []byte {
	return slices.Clone(l.files["trusted_root_tsa_only.json"])
}

// Layout writes the fixture as an OCI layout into a temporary folder and
// returns that. All samples share it: each index is tagged with its sample's
// name, legacy signatures and referrers with the tags that name digests.
func (l *LabSamples) Layout(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, content := range l.files {
		rel, ok := strings.CutPrefix(name, "layout/")
		if !ok {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(rel))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // #nosec G301 -- a test's folder
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil { // #nosec G306 -- a test's file
			tb.Fatal(err)
		}
	}
	return dir
}

// Evidence returns all layers that are about a digest, as an honest registry
// serves them: those under its tags `.sig` and `.att`, then those of its
// referrers, whatever their media type.
func (l *LabSamples) Evidence(tb testing.TB, about digest.Digest) []Layer {
	tb.Helper()
	var index ocispec.Index
	if err := json.Unmarshal(l.files["layout/index.json"], &index); err != nil {
		tb.Fatal(err)
	}
	var layers []Layer
	seen := map[digest.Digest]bool{}
	for _, d := range index.Manifests {
		if d.MediaType != ocispec.MediaTypeImageManifest || seen[d.Digest] {
			continue
		}
		var m ocispec.Manifest
		if err := json.Unmarshal(l.blob(d.Digest), &m); err != nil {
			tb.Fatal(err)
		}
		tag := d.Annotations[ocispec.AnnotationRefName]
		if tag != Tag(about, "sig") && tag != Tag(about, "att") && (m.Subject == nil || m.Subject.Digest != about) {
			continue
		}
		seen[d.Digest] = true
		for _, x := range m.Layers {
			layers = append(layers, Layer{MediaType: x.MediaType, Payload: l.blob(x.Digest), Annotations: x.Annotations})
		}
	}
	return layers
}

// Content returns a manifest, an index or a blob of the fixture.
func (l *LabSamples) Content(tb testing.TB, d digest.Digest) []byte {
	tb.Helper()
	content := l.blob(d)
	if len(content) == 0 {
		tb.Fatalf("%s is not in the fixture", d)
	}
	return content
}

func (l *LabSamples) blob(d digest.Digest) []byte {
	return slices.Clone(l.files["layout/blobs/"+d.Algorithm().String()+"/"+d.Encoded()])
}
