package installer_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// dressed publishes a plugin with everything that may hang off one: signatures in
// both forms, an attestation and an SBOM of the index and of every platform, and
// a signature of the SBOM.
func dressed(tb testing.TB, to plugintest.Target, key *trusttest.Key, version string, platforms []string) plugintest.Published {
	tb.Helper()
	p := plugintest.Publish(tb, to, plugintest.Plugin{Version: version, Body: "ELF " + version, Platforms: platforms}, version, "latest")
	subjects := []ocispec.Descriptor{p.Index}
	for _, manifest := range p.Manifests {
		subjects = append(subjects, manifest)
	}
	for _, subject := range subjects {
		plugintest.Sign(tb, to, key, subject)
		plugintest.PutLegacy(tb, to, plugintest.AttestationTag(subject.Digest), key.Attest(tb, subject.Digest, trusttest.PredicateSPDX, `{}`))
		plugintest.Refer(tb, to, subject, key.SignBundle(tb, subject.Digest))
		sbom := plugintest.Refer(tb, to, subject, trusttest.Layer{MediaType: artifact.MediaTypeSPDX, Payload: []byte(subject.Digest)})
		plugintest.Refer(tb, to, sbom, key.SignBundle(tb, sbom.Digest))
	}
	return p
}

// TestMirror copies from each kind of registry through a layout and a tar file to
// each kind of registry, and compares every tag and referrer with the source.
// INTEROP 14, 19, 28, 30: https://github.com/opentofu/opentofu/issues/3620,
// https://github.com/falcosecurity/falcoctl/issues/893,
// https://github.com/sigstore/cosign/issues/4507,
// https://github.com/oras-project/oras/issues/812
func TestMirror(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	for from := range registries(t) {
		for to, destination := range registries(t) {
			// A source for each: two publishers at once may lose a referrer
			// under the fallback tag, which has no way to prevent it.
			source := registries(t)[from]
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				p := dressed(t, repository(t, source.Host, "team/plugin"), key, "1.2.3", nil)
				ref := reference(t, source.Host+"/team/plugin:1")
				dir := filepath.Join(t.TempDir(), "layout")
				layout, err := installer.CreateLayout(t.Context(), dir)
				if err != nil {
					t.Fatal(err)
				}
				out, err := newInstaller(t, trusting(t, key)).Mirror(t.Context(), ref, layout.Destination(ref), installer.MirrorOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{"1.2.3", "latest"}, out.Tags); diff != "" {
					t.Errorf("tags (-want +got):\n%s", diff)
				}
				unpacked := throughTar(t, dir)
				i := newInstaller(t, trusting(t, key), installer.WithSource(installer.FromLayout(unpacked)))
				if _, err := i.Mirror(t.Context(), ref, repository(t, destination.Host, "copy"), installer.MirrorOptions{}); err != nil {
					t.Fatal(err)
				}
				mustEqual(t, repository(t, source.Host, "team/plugin"), repository(t, destination.Host, "copy"), p)
				installed, err := i.Install(t.Context(), ref, installer.InstallOptions{As: alias})
				if err != nil || installed.Receipt.Index != p.Index.Digest {
					t.Errorf("installing from the tar file: %v, %v", installed.Receipt.Index, err)
				}
			})
		}
	}
}

func throughTar(t *testing.T, dir string) string {
	t.Helper()
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := installer.WriteLayoutTar(t.Context(), dir, b); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same layout gives two tar files")
	}
	unpacked := t.TempDir()
	if err := installer.ExtractLayoutTar(t.Context(), &first, unpacked); err != nil {
		t.Fatal(err)
	}
	return unpacked
}

// mustEqual compares all that belongs to an artifact in two repositories.
func mustEqual(t *testing.T, a, b *ociregistry.Repository, p plugintest.Published) {
	t.Helper()
	describe := func(r *ociregistry.Repository) []string {
		var lines []string
		for _, tag := range []string{"1.2.3", "latest", plugintest.SignatureTag(p.Index.Digest), plugintest.AttestationTag(p.Index.Digest)} {
			desc, err := r.Resolve(t.Context(), tag)
			lines = append(lines, fmt.Sprint(tag, desc.Digest, err))
		}
		for _, subject := range append([]ocispec.Descriptor{p.Index}, p.Manifests["linux/s390x"], p.Manifests["windows/amd64"]) {
			lines = append(lines, referrers(t, r, subject)...)
		}
		return lines
	}
	if diff := cmp.Diff(describe(a), describe(b)); diff != "" {
		t.Errorf("(-source +copy):\n%s", diff)
	}
}

func referrers(t *testing.T, r *ociregistry.Repository, subject ocispec.Descriptor) []string {
	t.Helper()
	found, err := r.Referrers(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{subject.Digest.String()}
	digests := map[string]bool{}
	for _, d := range found {
		digests[d.Digest.String()] = true
		if exists, err := r.Exists(t.Context(), d); err != nil || !exists {
			t.Errorf("referrer %s: %v, %v", d.Digest, exists, err)
		}
	}
	return append(lines, fmt.Sprint(digests))
}

// TestMirrorSaysHowFarItIs: each blob is told of to its end.
func TestMirrorSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	key := trusttest.NewKey(t)
	repo := repository(t, registry.Host, "team/plugin")
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: randomText(1 << 20)}, "1.2.3")
	plugintest.Sign(t, repo, key, p.Index)
	ends := map[int64]bool{}
	steps := 0
	i := newInstaller(t, trusting(t, key), installer.WithEvents(func(e installer.Event) {
		if e.Step == installer.StepCopying {
			steps++
			ends[e.Total] = ends[e.Total] || e.Done == e.Total
		}
	}))
	if _, err := i.Mirror(t.Context(), reference(t, registry.Host+"/team/plugin:1"), repository(t, registry.Host, "copy"), installer.MirrorOptions{}); err != nil {
		t.Fatal(err)
	}
	layer := p.Layers[i.Platform()].Size
	if !ends[layer] || steps < 4 {
		t.Errorf("the layer of %d bytes: %d steps, ended: %v", layer, steps, ends)
	}
}

// TestMirrorMany carries five plugins for six platforms in one tar file and
// installs them without a registry, each platform.
func TestMirrorMany(t *testing.T) {
	t.Parallel()
	platforms := []string{"linux/amd64", "linux/arm64", "linux/arm/v7", "windows/amd64", "darwin/arm64", "freebsd/amd64"}
	key, registry := trusttest.NewKey(t), registrytest.NewReferrers(t)
	dir := filepath.Join(t.TempDir(), "layout")
	layout, err := installer.CreateLayout(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	i := newInstaller(t, trusting(t, key))
	for n := range 5 {
		name := fmt.Sprintf("team/plugin%d", n)
		dressed(t, repository(t, registry.Host, name), key, "1.0.0", platforms)
		ref := reference(t, registry.Host+"/"+name)
		if _, err := i.Mirror(t.Context(), ref, layout.Destination(ref), installer.MirrorOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	unpacked := throughTar(t, dir)
	registry.Gate.Forget()
	again, err := installer.OpenLayout(t.Context(), unpacked)
	if err != nil {
		t.Fatal(err)
	}
	refs, err := again.References(t.Context())
	if err != nil || len(refs) != 5 {
		t.Fatalf("%v, %v; want 5 references", refs, err)
	}
	for _, platform := range platforms {
		offline := newInstaller(t, trusting(t, key), installer.WithPlatform(platform), installer.WithSource(again.Open))
		for n, ref := range refs {
			installed, err := offline.Install(t.Context(), ref, installer.InstallOptions{As: fmt.Sprintf("registry.test/p%d", n)})
			if err != nil || installed.Receipt.Platform != platform {
				t.Errorf("%s for %s: %v, %v", ref, platform, installed.Receipt.Platform, err)
			}
		}
	}
	if requests := registry.Gate.Requests(); len(requests) > 0 {
		t.Errorf("the registry was asked: %v", requests)
	}
}

// TestMirrorPlatforms copies one platform only; the index keeps its digest.
func TestMirrorPlatforms(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	registry := registrytest.New(t)
	p := dressed(t, repository(t, registry.Host, "team/plugin"), key, "1.0.0", []string{"linux/amd64", "linux/s390x"})
	ref := reference(t, registry.Host+"/team/plugin")
	dir := t.TempDir()
	layout, err := installer.CreateLayout(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	opts := installer.MirrorOptions{Platforms: []string{"linux/s390x"}}
	if _, err := newInstaller(t, trusting(t, key)).Mirror(t.Context(), ref, layout.Destination(ref), opts); err != nil {
		t.Fatal(err)
	}
	for platform, want := range map[string]bool{"linux/s390x": true, "linux/amd64": false} {
		i := newInstaller(t, trusting(t, key), installer.WithPlatform(platform), installer.WithSource(installer.FromLayout(dir)))
		installed, err := i.Install(t.Context(), ref, installer.InstallOptions{As: alias})
		if (err == nil) != want || want && installed.Receipt.Index != p.Index.Digest {
			t.Errorf("%s: %v; want success = %v", platform, err, want)
		}
	}
}

// TestMirrorPlatformsToRegistry copies one platform to registries: one that is
// configured to takes it, the signature included; those that insist on all are
// named as such, and have no tag for it.
func TestMirrorPlatformsToRegistry(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	source := registrytest.New(t)
	p := dressed(t, repository(t, source.Host, "team/plugin"), key, "1.0.0", []string{"linux/amd64", "linux/s390x"})
	for name, c := range map[string]struct {
		registry *registrytest.Registry
		want     error
	}{
		"sparse indexes allowed":  {registrytest.New(t, registrytest.WithSparseIndexes()), nil},
		"distribution":            {registrytest.New(t), installer.Reason("sparse")},
		"go-containerregistry's":  {registrytest.NewReferrers(t), installer.Reason("sparse")},
		"a registry that is down": {brokenRegistry(t), installer.ErrUnavailable},
	} {
		ref, copied := reference(t, source.Host+"/team/plugin"), reference(t, c.registry.Host+"/copy")
		opts := installer.MirrorOptions{Platforms: []string{"linux/s390x"}}
		_, err := newInstaller(t, trusting(t, key)).Mirror(t.Context(), ref, repository(t, c.registry.Host, "copy"), opts)
		if !errors.Is(err, c.want) || errors.Is(err, installer.Reason("sparse")) != errors.Is(c.want, installer.Reason("sparse")) {
			t.Errorf("%s: %v; want %v", name, err, c.want)
		}
		i := newInstaller(t, trusting(t, key), installer.WithPlatform("linux/s390x"))
		installed, err := i.Install(t.Context(), copied, installer.InstallOptions{As: alias})
		switch {
		case c.want == nil && (err != nil || installed.Receipt.Index != p.Index.Digest):
			t.Errorf("%s: installing: %v", name, err)
		case c.want != nil && err == nil:
			t.Errorf("%s: %s was tagged all the same", name, installed.Receipt.Index)
		}
		if c.want != nil {
			continue
		}
		if _, err := newInstaller(t, trusting(t, key), installer.WithPlatform("linux/amd64")).Verify(t.Context(), copied); !errors.Is(err, installer.ErrNotFound) {
			t.Errorf("%s: the platform that was left out: %v; want ErrNotFound", name, err)
		}
	}
}

// brokenRegistry answers 503 to what is pushed.
func brokenRegistry(tb testing.TB) *registrytest.Registry {
	tb.Helper()
	registry := registrytest.New(tb)
	registry.Gate.Break(tb, registrytest.Fault{Method: http.MethodPut, Path: "/manifests/", Status: http.StatusServiceUnavailable})
	return registry
}

// TestMirrorRefuses holds that what the policy refuses is not carried on, and
// that broken evidence is not left behind silently.
func TestMirrorRefuses(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	registry := registrytest.NewReferrers(t)
	dressed(t, repository(t, registry.Host, "team/plugin"), key, "1.0.0", nil)
	ref := reference(t, registry.Host+"/team/plugin")
	mirror := func(policy installer.Policy) error {
		dir := t.TempDir()
		layout, err := installer.CreateLayout(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = newInstaller(t, policy).Mirror(t.Context(), ref, layout.Destination(ref), installer.MirrorOptions{})
		if refs, listErr := layout.References(t.Context()); listErr != nil || len(refs) != 0 {
			t.Errorf("tagged all the same: %v, %v", refs, listErr)
		}
		return err
	}
	if err := mirror(trusting(t, trusttest.NewKey(t))); !errors.Is(err, installer.ErrRefused) {
		t.Errorf("got %v; want ErrRefused", err)
	}
	registry.Gate.Break(t, registrytest.Fault{Path: "/referrers/", Status: 403})
	if err := mirror(trusting(t, key)); !errors.Is(err, installer.ErrForbidden) {
		t.Errorf("got %v; want ErrForbidden", err)
	}
}

// TestExtractLayoutTarHostile refuses tar files that are no layouts.
func TestExtractLayoutTarHostile(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]tar.Header{
		"climbs":      {Name: "../x", Typeflag: tar.TypeReg},
		"inside":      {Name: "blobs/../../x", Typeflag: tar.TypeReg},
		"absolute":    {Name: "/index.json", Typeflag: tar.TypeReg},
		"link":        {Name: "blobs/sha256/aa", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		"hard link":   {Name: "blobs/sha256/aa", Typeflag: tar.TypeLink, Linkname: "index.json"},
		"device":      {Name: "blobs/sha256/aa", Typeflag: tar.TypeChar},
		"other files": {Name: "run.sh", Typeflag: tar.TypeReg},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := errors.Join(w.WriteHeader(&header), w.Close()); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := installer.ExtractLayoutTar(t.Context(), &b, dir); !errors.Is(err, installer.Reason("hostile")) {
			t.Errorf("%s: got %v; want hostile", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
	cut := io.LimitReader(bytes.NewReader(plugintest.Tar(t, []plugintest.Entry{{Name: "index.json", Body: "{}"}})), 513)
	if err := installer.ExtractLayoutTar(t.Context(), cut, t.TempDir()); !errors.Is(err, installer.Reason("corrupt")) {
		t.Errorf("cut: got %v; want corrupt", err)
	}
}

// TestExtractLayoutTarCancelled stops in the middle of a large blob.
func TestExtractLayoutTarCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	archive := plugintest.Tar(t, []plugintest.Entry{{Name: "blobs/sha256/aa", Body: randomText(8 << 20)}})
	read := 0
	from := readerFunc(func(p []byte) (int, error) {
		if read > 4096 {
			cancel()
		}
		n := copy(p, archive[read:])
		read += n
		return n, nil
	})
	if err := installer.ExtractLayoutTar(ctx, from, t.TempDir()); !errors.Is(err, context.Canceled) || errors.Is(err, installer.Reason("corrupt")) {
		t.Errorf("got %v; want context.Canceled", err)
	}
	if read > 1<<20 {
		t.Errorf("read %d bytes after it was cancelled", read)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
