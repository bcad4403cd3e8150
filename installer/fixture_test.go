package installer_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/evidence"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/trusttest"
)

// alias is a name without a port, since the registries of tests have one.
const alias = "registry.test/team/plugin"

// target is what tests push to: a repository or a layout.
type target interface {
	PushBlob(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) (bool, error)
	PushManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error
}

// repository opens a repository of a test's registry.
func repository(tb testing.TB, host, name string) *ociregistry.Repository {
	tb.Helper()
	repo, err := client(tb).Repository(host + "/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return repo
}

func client(tb testing.TB) *ociregistry.Client {
	tb.Helper()
	c, err := ociregistry.NewClient(ociregistry.WithRetries(1, time.Millisecond))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// build is an artifact that a test makes.
type build struct {
	version   string
	platforms []string
	// body is the content of the executable; the platform is added.
	body string
	// change edits the parts before they are encoded; each may be nil.
	entries  func(platform string, in []tarEntry) []tarEntry
	manifest func(*ocispec.Manifest)
	index    func(*ocispec.Index)
}

type tarEntry struct {
	name, body string
	kind       byte
	link       string
}

// published is what came out.
type published struct {
	index     ocispec.Descriptor
	manifests map[string]ocispec.Descriptor
	layers    map[string]ocispec.Descriptor
}

// publish builds an artifact in the runner's layout and pushes it under tags.
func publish(tb testing.TB, to target, b build, tags ...string) published {
	tb.Helper()
	if b.platforms == nil {
		b.platforms = []string{artifact.HostPlatform().String(), "linux/s390x", "windows/amd64"}
	}
	out := published{manifests: map[string]ocispec.Descriptor{}, layers: map[string]ocispec.Descriptor{}}
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	for _, name := range b.platforms {
		platform, err := artifact.ParsePlatform(name)
		if err != nil {
			tb.Fatal(err)
		}
		manifest, layer := publishPlatform(tb, to, b, platform)
		out.manifests[name], out.layers[name] = manifest, layer
		oci := platform.OCI()
		manifest.Platform = &oci
		index.Manifests = append(index.Manifests, manifest)
	}
	if b.index != nil {
		b.index(&index)
	}
	out.index = pushJSON(tb, to, ocispec.MediaTypeImageIndex, index, tags...)
	return out
}

func publishPlatform(tb testing.TB, to target, b build, platform artifact.Platform) (manifest, layer ocispec.Descriptor) {
	tb.Helper()
	entries := []tarEntry{{name: "plugin/" + platform.Executable(), body: b.body + " " + platform.String()}}
	if platform.OS() == "windows" {
		entries[0].name = "Files/" + entries[0].name
	}
	if b.entries != nil {
		entries = b.entries(platform.String(), entries)
	}
	archive := tarOf(tb, entries)
	layer = pushBlob(tb, to, ocispec.MediaTypeImageLayerGzip, gzipOf(tb, archive))
	layer.Annotations = map[string]string{artifact.AnnotationLayer: b.version}
	config, content, err := artifact.EncodeConfig(artifact.ConfigInput{
		Platform: platform, Version: b.version, DiffIDs: []digest.Digest{digest.FromBytes(archive)},
	})
	if err != nil {
		tb.Fatal(err)
	}
	pushContent(tb, to, config, content)
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: config, Layers: []ocispec.Descriptor{layer},
	}
	if b.manifest != nil {
		b.manifest(&m)
	}
	return pushJSON(tb, to, ocispec.MediaTypeImageManifest, m), layer
}

func pushJSON(tb testing.TB, to target, mediaType string, value any, tags ...string) ocispec.Descriptor {
	tb.Helper()
	content := jsonOf(tb, value)
	desc := artifact.Describe(mediaType, content)
	if err := to.PushManifest(tb.Context(), desc, content, tags...); err != nil {
		tb.Fatal(err)
	}
	return desc
}

func pushBlob(tb testing.TB, to target, mediaType string, content []byte) ocispec.Descriptor {
	tb.Helper()
	desc := artifact.Describe(mediaType, content)
	pushContent(tb, to, desc, content)
	return desc
}

func pushContent(tb testing.TB, to target, desc ocispec.Descriptor, content []byte) {
	tb.Helper()
	_, err := to.PushBlob(tb.Context(), desc, func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// signLegacy puts layers of evidence under a tag of cosign 2.
func signLegacy(tb testing.TB, to target, tag string, layers ...trusttest.Layer) {
	tb.Helper()
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
	m.Config = pushBlob(tb, to, ocispec.MediaTypeImageConfig, []byte(`{"architecture":"","os":"","rootfs":{"type":"layers","diff_ids":[]}}`))
	for _, layer := range layers {
		desc := pushBlob(tb, to, layer.MediaType, layer.Payload)
		desc.Annotations = layer.Annotations
		m.Layers = append(m.Layers, desc)
	}
	pushJSON(tb, to, ocispec.MediaTypeImageManifest, m, tag)
}

// sign puts a cosign 2 signature beside a subject.
func sign(tb testing.TB, to target, key *trusttest.Key, subject ocispec.Descriptor) {
	tb.Helper()
	signLegacy(tb, to, evidence.SignatureTag(subject.Digest), key.Sign(tb, subject.Digest))
}

// refer hangs a bundle off a subject.
func refer(tb testing.TB, to target, subject ocispec.Descriptor, layer trusttest.Layer) ocispec.Descriptor {
	tb.Helper()
	blob := pushBlob(tb, to, layer.MediaType, layer.Payload)
	empty, content := artifact.EmptyConfig()
	pushContent(tb, to, empty, content)
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

// trusting is a policy that wants a signature by the key, for everything.
func trusting(tb testing.TB, key *trusttest.Key) installer.Policy {
	tb.Helper()
	return policyOf(tb, installer.Rule{Scope: "**", Signers: []installer.Signer{signerOf(tb, key)}})
}

func signerOf(tb testing.TB, key *trusttest.Key) installer.Signer {
	tb.Helper()
	signer, err := installer.RequireKey(key.PublicPEM(tb), installer.KeyOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return signer
}

func policyOf(tb testing.TB, rules ...installer.Rule) installer.Policy {
	tb.Helper()
	policy, err := installer.NewPolicy(rules...)
	if err != nil {
		tb.Fatal(err)
	}
	return policy
}

// newInstaller installs into a fresh folder, from registries.
func newInstaller(tb testing.TB, policy installer.Policy, opts ...installer.Option) *installer.Installer {
	tb.Helper()
	all := append([]installer.Option{
		installer.WithFolder(filepath.Join(tb.TempDir(), "plugins")),
		installer.WithSource(installer.FromRegistries(client(tb))),
	}, opts...)
	i, err := installer.New(policy, all...)
	if err != nil {
		tb.Fatal(err)
	}
	return i
}

func reference(tb testing.TB, text string) installer.Reference {
	tb.Helper()
	ref, err := installer.ParseReference(text)
	if err != nil {
		tb.Fatal(err)
	}
	return ref
}

// mustBeEmpty fails if a folder of plugins has anything in it but locks.
func mustBeEmpty(tb testing.TB, dir string) {
	tb.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && !strings.Contains(path, "/.fleeting-plugin/locks/") {
			tb.Errorf("left behind: %s", path)
		}
		if err == nil && d.IsDir() && strings.Contains(path, "/staging/") {
			tb.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func tarOf(tb testing.TB, entries []tarEntry) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		kind := e.kind
		if kind == 0 {
			kind = tar.TypeReg
		}
		header := &tar.Header{Name: e.name, Mode: 0o755, Size: int64(len(e.body)), Typeflag: kind, Linkname: e.link}
		if err := w.WriteHeader(header); err != nil {
			tb.Fatal(err)
		}
		if _, err := io.WriteString(w, e.body); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(tb testing.TB, content []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func readFile(tb testing.TB, path string) string {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(content)
}

// registries are the two kinds: with the referrers API and without.
func registries(t *testing.T) map[string]*registrytest.Registry {
	t.Helper()
	return map[string]*registrytest.Registry{
		"fallback tag":  registrytest.New(t),
		"referrers API": registrytest.NewReferrers(t),
	}
}
