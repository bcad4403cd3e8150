package installer_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	runner "gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/installer"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// TestTakeOver: what the runner's own installer installed has no receipt. It is
// said so, and an installation takes it over.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	registry, key := registrytest.New(t), trusttest.NewKey(t)
	host := portless(t, "10.41.0.7", registry)
	repo := repository(t, registry.Host, "group/plugin")
	p := plugintest.Publish(t, repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3", "1")
	plugintest.Sign(t, repo, key, p.Index)
	i := newInstaller(t, trusting(t, key), installer.WithSource(portlessRegistries(t, host).Open))
	if err := runner.Install(t.Context(), host+"/group/plugin:1.2.3", runner.WithDirectory(i.Folder().Dir())); err != nil {
		t.Fatal(err)
	}
	list, err := i.Folder().List()
	if err != nil || len(list) != 1 || !list[0].Foreign {
		t.Fatalf("%+v, %v", list, err)
	}
	var failed *installer.Error
	if err := list[0].Verify(t.Context()); !errors.Is(err, installer.Reason("foreign")) || errors.Is(err, installer.Reason("changed")) ||
		!errors.As(err, &failed) || failed.Ref != host+"/group/plugin:1.2.3" {
		t.Errorf("got %v", err)
	}
	if _, err := i.Folder().Uninstall(t.Context(), reference(t, host+"/group/plugin")); !errors.Is(err, installer.Reason("not-installed")) ||
		!strings.Contains(err.Error(), "to remove 1.2.3, which something else installed, name that version") {
		t.Errorf("uninstall: %v", err)
	}
	taken, err := i.Install(t.Context(), reference(t, host+"/group/plugin:1.2.3"), installer.InstallOptions{})
	if err != nil || !taken.JustInstalled || taken.Foreign {
		t.Fatalf("%+v, %v", taken, err)
	}
	if err := taken.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if found, err := runner.LookPath(host+"/group/plugin:1", i.Folder().Dir()); err != nil || found != taken.Path {
		t.Errorf("the runner finds %q, %v", found, err)
	}
}

func writeExecutable(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		tb.Fatal(err)
	}
}

// image is a container image to make, as other tools do.
type image struct {
	config   ocispec.Image
	mediaOf  string // of the manifest; OCI's if empty
	layers   []ocispec.Descriptor
	manifest func(*ocispec.Manifest)
}

func (im image) push(tb testing.TB, to plugintest.Target, tags ...string) ocispec.Descriptor {
	tb.Helper()
	content, err := json.Marshal(im.config)
	if err != nil {
		tb.Fatal(err)
	}
	docker := im.mediaOf == artifact.MediaTypeDockerManifest
	configType := ocispec.MediaTypeImageConfig
	if docker {
		configType = artifact.MediaTypeDockerConfig
	} else {
		im.mediaOf = ocispec.MediaTypeImageManifest
	}
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: im.mediaOf,
		Config: plugintest.PushBlob(tb, to, configType, content), Layers: im.layers,
	}
	if im.manifest != nil {
		im.manifest(&m)
	}
	return plugintest.PushJSON(tb, to, im.mediaOf, m, tags...)
}

func hostConfig(entrypoint ...string) ocispec.Image {
	return ocispec.Image{Platform: artifact.HostPlatform().OCI(), Config: ocispec.ImageConfig{Entrypoint: entrypoint}}
}

// TestForeignLayouts installs what other tools publish; INTEROP, "What our
// installer must also accept".
func TestForeignLayouts(t *testing.T) {
	t.Parallel()
	layer := func(tb testing.TB, to plugintest.Target, mediaType string, entries ...plugintest.Entry) ocispec.Descriptor {
		tb.Helper()
		return plugintest.PushBlob(tb, to, mediaType, plugintest.Gzip(tb, plugintest.Tar(tb, entries)))
	}
	base := plugintest.Entry{Name: "etc/passwd", Body: "root"}
	for name, test := range map[string]struct {
		make func(tb testing.TB, to plugintest.Target)
		want string // files and the version
	}{
		"C16 docker build, single manifest, from scratch": {func(tb testing.TB, to plugintest.Target) {
			tb.Helper()
			l := layer(tb, to, artifact.MediaTypeDockerLayer, plugintest.Entry{Name: "plugin/" + program(), Body: "ELF"}, plugintest.Entry{Name: "plugin/LICENSE", Body: "MIT"})
			image{config: hostConfig("/plugin/" + program()), mediaOf: artifact.MediaTypeDockerManifest, layers: []ocispec.Descriptor{l}}.push(tb, to, "1.2.3")
		}, "1.2.3 LICENSE plugin"},
		"buildx index with a base image": {func(tb testing.TB, to plugintest.Target) {
			tb.Helper()
			layers := []ocispec.Descriptor{
				layer(tb, to, ocispec.MediaTypeImageLayerGzip, base, plugintest.Entry{Name: "bin/sh", Kind: '2', Link: "busybox"}),
				layer(tb, to, ocispec.MediaTypeImageLayerGzip, plugintest.Entry{Name: "usr/local/bin/fleeting-plugin-x", Body: "ELF"}),
				layer(tb, to, ocispec.MediaTypeImageLayerGzip, plugintest.Entry{Name: "etc/motd", Body: "hello"}),
			}
			m := image{config: hostConfig("/usr/local/bin/fleeting-plugin-x", "serve"), layers: layers}.push(tb, to)
			platform := artifact.HostPlatform().OCI()
			m.Platform = &platform
			attestation := image{layers: []ocispec.Descriptor{plugintest.PushBlob(tb, to, "application/vnd.in-toto+json", []byte(`{}`))}}.push(tb, to)
			attestation.Platform = &ocispec.Platform{OS: "unknown", Architecture: "unknown"}
			index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{attestation, m}}
			plugintest.PushJSON(tb, to, index.MediaType, index, "v1.2.3")
		}, "1.2.3 plugin"},
		"ko": {func(tb testing.TB, to plugintest.Target) {
			tb.Helper()
			layers := []ocispec.Descriptor{
				layer(tb, to, ocispec.MediaTypeImageLayerGzip, base),
				layer(tb, to, ocispec.MediaTypeImageLayerGzip, plugintest.Entry{Name: "var/run/ko/data", Body: "d"}),
				layer(tb, to, ocispec.MediaTypeImageLayerGzip, plugintest.Entry{Name: "ko-app/", Kind: '5'}, plugintest.Entry{Name: "ko-app/fleeting-plugin-x", Body: "ELF"}),
			}
			config := hostConfig("/ko-app/fleeting-plugin-x")
			config.Config.Labels = map[string]string{ocispec.AnnotationVersion: "v1.2.3"}
			image{config: config, layers: layers}.push(tb, to, "latest")
		}, "1.2.3 plugin"},
		"goreleaser, relative entrypoint, version in the environment": {func(tb testing.TB, to plugintest.Target) {
			tb.Helper()
			config := hostConfig("./fleeting-plugin-x")
			config.Config.WorkingDir = "/app"
			config.Config.Env = []string{"PATH=/", "FLEETING_PLUGIN_PKG_VERSION=1.2.3"}
			l := layer(tb, to, ocispec.MediaTypeImageLayerGzip, plugintest.Entry{Name: "/app/fleeting-plugin-x", Body: "ELF"})
			image{config: config, layers: []ocispec.Descriptor{l}}.push(tb, to, "latest")
		}, "1.2.3 plugin"},
		"oras with a platform": {func(tb testing.TB, to plugintest.Target) {
			tb.Helper()
			file := plugintest.PushBlob(tb, to, "application/octet-stream", []byte("ELF"))
			file.Annotations = map[string]string{ocispec.AnnotationTitle: "dist/" + program()}
			image{config: hostConfig(), layers: []ocispec.Descriptor{file}}.push(tb, to, "1.2.3")
		}, "1.2.3 plugin"},
		"zstd layer": {func(tb testing.TB, to plugintest.Target) {
			tb.Helper()
			archive := plugintest.Tar(tb, []plugintest.Entry{{Name: "plugin/" + program(), Body: "ELF"}})
			l := plugintest.PushBlob(tb, to, ocispec.MediaTypeImageLayerZstd, zstdOf(tb, archive))
			l.Annotations = map[string]string{artifact.AnnotationLayer: "1.2.3"}
			image{config: hostConfig(), layers: []ocispec.Descriptor{l}}.push(tb, to, "1.2.3")
		}, "1.2.3 plugin"},
		"raw layer, several annotated": {func(tb testing.TB, to plugintest.Target) {
			tb.Helper()
			var layers []ocispec.Descriptor
			for _, body := range []string{"ELF", "another"} {
				l := plugintest.PushBlob(tb, to, ocispec.MediaTypeImageLayer, plugintest.Tar(tb, []plugintest.Entry{{Name: "plugin/" + program(), Body: body}}))
				l.Annotations = map[string]string{artifact.AnnotationLayer: "v1.2.3"}
				layers = append(layers, l)
			}
			image{config: hostConfig(), layers: layers}.push(tb, to, "1.2.3_build.5")
		}, "1.2.3 plugin"},
		"an image that runs a shell": {func(tb testing.TB, to plugintest.Target) {
			tb.Helper()
			l := layer(tb, to, ocispec.MediaTypeImageLayerGzip, base)
			image{config: hostConfig("/bin/sh"), layers: []ocispec.Descriptor{l}}.push(tb, to, "1.2.3")
		}, ""},
		"an image without the file that it runs": {func(tb testing.TB, to plugintest.Target) {
			tb.Helper()
			l := layer(tb, to, ocispec.MediaTypeImageLayerGzip, base)
			image{config: hostConfig("/app/x"), layers: []ocispec.Descriptor{l}}.push(tb, to, "1.2.3")
		}, ""},
		"an image that says no version": {func(tb testing.TB, to plugintest.Target) {
			tb.Helper()
			l := layer(tb, to, ocispec.MediaTypeImageLayerGzip, plugintest.Entry{Name: "plugin/" + program(), Body: "ELF"})
			image{config: hostConfig("/plugin/" + program()), layers: []ocispec.Descriptor{l}}.push(tb, to, "latest")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := newLayout(t)
			test.make(t, layout)
			i := newInstaller(t, installer.UnsafeNoVerification(), installer.WithSource(installer.FromLayout(layout.Name())))
			installed, err := i.Install(t.Context(), reference(t, alias), installer.InstallOptions{})
			if test.want == "" {
				if !errors.Is(err, installer.Reason("not-plugin")) {
					t.Errorf("got %v; want not-plugin", err)
				}
				mustBeEmpty(t, i.Folder().Dir())
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := installed.Receipt.Version.Core().String()
			for _, name := range []string{"LICENSE", program()} {
				if _, err := os.Stat(filepath.Join(installed.Dir, name)); err == nil {
					got += " " + strings.TrimSuffix(name, ".exe")
				}
			}
			if got != test.want || readFile(t, installed.Path) != "ELF" {
				t.Errorf("got %q with %q; want %q", got, readFile(t, installed.Path), test.want)
			}
			if found, err := runner.LookPath(alias+":1.2.3", i.Folder().Dir()); err != nil || found != installed.Path {
				t.Errorf("the runner finds %q, %v", found, err)
			}
			lockedElsewhere(t, layout.Name(), installed)
		})
	}
}

// lockedElsewhere holds that what can be locked can be installed from the lock:
// what says nothing of its version has that which the lock was written with.
func lockedElsewhere(t *testing.T, layout string, want installer.Installed) {
	t.Helper()
	i := newInstaller(t, installer.UnsafeNoVerification(), installer.WithSource(installer.FromLayout(layout)))
	lock, err := i.Lock(t.Context(), installer.Lock{}, reference(t, alias), installer.LockOptions{})
	if err != nil {
		t.Errorf("lock: %v", err)
		return
	}
	got, err := i.InstallLocked(t.Context(), lock, reference(t, alias))
	if err != nil || !got.Receipt.Version.Equal(want.Receipt.Version) || got.Receipt.Manifest != want.Receipt.Manifest {
		t.Errorf("from the lock: %s, %v; want %s", got.Receipt.Version, err, want.Receipt.Version)
	}
}

func zstdOf(tb testing.TB, content []byte) []byte {
	tb.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	return w.EncodeAll(content, nil)
}

// TestHostileLayers installs archives that must not be: nothing is installed,
// nothing is written elsewhere. The corpus itself is tested with the reader of
// archives; this holds that its refusals arrive.
func TestHostileLayers(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	for name, entries := range map[string][]plugintest.Entry{
		"C2 climbs":        {{Name: "plugin/" + program(), Body: "ELF"}, {Name: "plugin/../../../../../../../../tmp/PWNED", Body: "evil"}},
		"C2c a link":       {{Name: "plugin/real", Body: "ELF"}, {Name: "plugin/" + program(), Kind: '2', Link: "real"}},
		"C2c no plugin":    {{Name: "plugin/other", Body: "ELF"}},
		"C2c duplicate":    {{Name: "plugin/" + program(), Body: "ELF"}, {Name: "plugin/" + program(), Body: "evil"}},
		"a receipt of its": {{Name: "plugin/" + program(), Body: "ELF"}, {Name: "plugin/fleeting-plugin.receipt.json", Body: "{}"}},
		"C2c a bomb":       {{Name: "plugin/" + program(), Body: strings.Repeat("\x00", 64<<20)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := newLayout(t)
			p := plugintest.Publish(t, layout, plugintest.Plugin{
				Version: "1.2.3", Platforms: []string{artifact.HostPlatform().String()},
				Entries: func(string, []plugintest.Entry) []plugintest.Entry { return entries },
			}, "1.2.3")
			plugintest.Sign(t, layout, key, p.Index)
			i := newInstaller(t, trusting(t, key), installer.WithSource(installer.FromLayout(layout.Name())))
			if _, err := i.Install(t.Context(), reference(t, alias), installer.InstallOptions{}); err == nil {
				t.Error("installed")
			}
			mustBeEmpty(t, i.Folder().Dir())
		})
	}
}

// TestStoredNames is INTEROP C3, C5, C10 and C18: names that the runner cannot
// look up, or would mistake.
func TestStoredNames(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	plugintest.Publish(t, layout, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	source := installer.WithSource(installer.FromLayout(layout.Name()))
	for _, name := range []string{
		"registry.test:5050/team/plugin", "registry.test/team/con", "registry.test/nul/x", "registry.test/team/1.2.3",
		"registry.test/1.2.3-rc.1/x", "localhost/x",
	} {
		i := newInstaller(t, installer.UnsafeNoVerification(), source)
		_, err := i.Install(t.Context(), reference(t, name), installer.InstallOptions{})
		if !errors.Is(err, installer.Reason("name")) {
			t.Errorf("%s: got %v; want name", name, err)
		}
		if _, err := i.Install(t.Context(), reference(t, name), installer.InstallOptions{As: alias}); err != nil {
			t.Errorf("%s under another name: %v", name, err)
		}
		for _, bad := range []string{alias + ":1", alias + "@" + someDigest, "registry.test:1/x", "https://x"} {
			if _, err := i.Install(t.Context(), reference(t, name), installer.InstallOptions{As: bad}); err == nil {
				t.Errorf("installed as %s", bad)
			}
		}
	}
	if dir, err := installer.DefaultFolder(func(string) (string, bool) { return "", false }); err == nil {
		t.Errorf("C18: without HOME plugins would be in %q", dir)
	}
}

// TestNested is INTEROP C10: a version of a/b is none of a.
func TestNested(t *testing.T) {
	t.Parallel()
	layout, deeper := newLayout(t), newLayout(t)
	plugintest.Publish(t, layout, plugintest.Plugin{Version: "1.0.0", Body: "ELF"}, "1.0.0")
	plugintest.Publish(t, deeper, plugintest.Plugin{Version: "9.9.9", Body: "ELF"}, "9.9.9")
	folder := installer.WithFolder(filepath.Join(t.TempDir(), "plugins"))
	for name, from := range map[string]string{"registry.test/a": layout.Name(), "registry.test/a/b": deeper.Name()} {
		i := newInstaller(t, installer.UnsafeNoVerification(), folder, installer.WithSource(installer.FromLayout(from)))
		if _, err := i.Install(t.Context(), reference(t, name), installer.InstallOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	i := newInstaller(t, installer.Policy{}, folder)
	for name, want := range map[string]string{"registry.test/a": "a/1.0.0/" + program(), "registry.test/a/b": "a/b/9.9.9/" + program()} {
		got, err := i.Folder().LookPath(reference(t, name))
		if err != nil || !strings.HasSuffix(filepath.ToSlash(got), want) {
			t.Errorf("%s is %q, %v; want …/%s", name, got, err, want)
		}
	}
	list, err := i.Folder().List()
	if err != nil || len(list) != 2 {
		t.Errorf("%d installed, %v; want 2", len(list), err)
	}
}

// TestForeignVersions holds that what others put into the folder is listed, and
// neither run nor taken for installed. INTEROP C11.
func TestForeignVersions(t *testing.T) {
	t.Parallel()
	layout := newLayout(t)
	plugintest.Publish(t, layout, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	i := newInstaller(t, installer.UnsafeNoVerification(), installer.WithSource(installer.FromLayout(layout.Name())))
	folder := filepath.Join(i.Folder().Dir(), alias)
	writeExecutable(t, filepath.Join(folder, "2.0.0", program()), "by others")
	writeExecutable(t, filepath.Join(folder, "1.2.3", program()), "by others")
	if _, err := i.Folder().LookPath(reference(t, alias)); !errors.Is(err, installer.Reason("not-installed")) {
		t.Errorf("got %v; want not-installed", err)
	}
	list, err := i.Folder().List()
	if err != nil || len(list) != 2 || !list[0].Foreign || !list[1].Foreign {
		t.Errorf("%+v, %v; want two foreign ones", list, err)
	}
	installed, err := i.Install(t.Context(), reference(t, alias+":1"), installer.InstallOptions{})
	if err != nil || !installed.JustInstalled || !strings.HasPrefix(readFile(t, installed.Path), "ELF") {
		t.Errorf("%+v, %v; want the foreign one replaced", installed, err)
	}
	if _, err := i.Folder().Uninstall(t.Context(), reference(t, alias+":2.0.0")); err != nil {
		t.Errorf("uninstalling a foreign one: %v", err)
	}
	mode, err := os.Stat(installed.Dir)
	if err != nil || runtime.GOOS != "windows" && mode.Mode().Perm() != 0o755 {
		t.Errorf("C19: mode %v, %v; want 0755", mode.Mode(), err)
	}
}
