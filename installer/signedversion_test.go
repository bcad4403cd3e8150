package installer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// imageOf is what docker build makes, with the version where sayVersion puts it.
func imageOf(tb testing.TB, to plugintest.Target, body string, sayVersion func(*ocispec.Image, *ocispec.Manifest), tags ...string) ocispec.Descriptor {
	tb.Helper()
	layer := plugintest.PushBlob(tb, to, ocispec.MediaTypeImageLayerGzip, plugintest.Gzip(tb, plugintest.Tar(tb, []plugintest.Entry{{Name: "plugin/" + program(), Body: body}})))
	config := hostConfig("/plugin/" + program())
	var scratch ocispec.Manifest
	sayVersion(&config, &scratch)
	return image{
		config: config, layers: []ocispec.Descriptor{layer},
		manifest: func(m *ocispec.Manifest) { m.Annotations = scratch.Annotations },
	}.push(tb, to, tags...)
}

// rawFileOf is what oras pushes.
func rawFileOf(tb testing.TB, to plugintest.Target, body string, annotations map[string]string, tags ...string) ocispec.Descriptor {
	tb.Helper()
	file := plugintest.PushBlob(tb, to, "application/octet-stream", []byte(body))
	file.Annotations = map[string]string{ocispec.AnnotationTitle: program()}
	return image{
		config: hostConfig(), layers: []ocispec.Descriptor{file},
		manifest: func(m *ocispec.Manifest) { m.Annotations = annotations },
	}.push(tb, to, tags...)
}

// indexAround puts a manifest for this machine into an index that says a version.
func indexAround(tb testing.TB, to plugintest.Target, manifest ocispec.Descriptor, annotations map[string]string, tags ...string) ocispec.Descriptor {
	tb.Helper()
	platform := artifact.HostPlatform().OCI()
	manifest.Platform = &platform
	index := ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex,
		Manifests: []ocispec.Descriptor{manifest}, Annotations: annotations,
	}
	return plugintest.PushJSON(tb, to, index.MediaType, index, tags...)
}

// retagged are signed artifacts of version 1.0.0 under the tag of version 1.3.0:
// anyone who may push can put an old one there. Each says its version in another
// place.
func retagged() map[string]func(tb testing.TB, to plugintest.Target) (signed ocispec.Descriptor) {
	const old, tag = "1.0.0", "1.3.0"
	said := map[string]string{ocispec.AnnotationVersion: old}
	return map[string]func(tb testing.TB, to plugintest.Target) ocispec.Descriptor{
		"in a label": func(tb testing.TB, to plugintest.Target) ocispec.Descriptor {
			return imageOf(tb, to, "old", func(c *ocispec.Image, _ *ocispec.Manifest) { c.Config.Labels = said }, tag)
		},
		"in the environment": func(tb testing.TB, to plugintest.Target) ocispec.Descriptor {
			return imageOf(tb, to, "old", func(c *ocispec.Image, _ *ocispec.Manifest) { c.Config.Env = []string{artifact.EnvVersion + "=" + old} }, tag)
		},
		"in the environment, and another label from the base image": func(tb testing.TB, to plugintest.Target) ocispec.Descriptor {
			return imageOf(tb, to, "old", func(c *ocispec.Image, _ *ocispec.Manifest) {
				c.Config.Env = []string{artifact.EnvVersion + "=" + old}
				c.Config.Labels = map[string]string{ocispec.AnnotationVersion: tag}
			}, tag)
		},
		"in an annotation": func(tb testing.TB, to plugintest.Target) ocispec.Descriptor {
			return imageOf(tb, to, "old", func(_ *ocispec.Image, m *ocispec.Manifest) { m.Annotations = said }, "v"+tag)
		},
		"of a raw file": func(tb testing.TB, to plugintest.Target) ocispec.Descriptor {
			return rawFileOf(tb, to, "old", said, tag)
		},
		"in the config of a raw file": func(tb testing.TB, to plugintest.Target) ocispec.Descriptor {
			file := plugintest.PushBlob(tb, to, "application/octet-stream", []byte("old"))
			file.Annotations = map[string]string{ocispec.AnnotationTitle: program()}
			config := hostConfig()
			config.Config.Labels = said
			return image{config: config, layers: []ocispec.Descriptor{file}}.push(tb, to, tag)
		},
		"in a signed index": func(tb testing.TB, to plugintest.Target) ocispec.Descriptor {
			manifest := imageOf(tb, to, "old", func(*ocispec.Image, *ocispec.Manifest) {})
			return indexAround(tb, to, manifest, said, tag)
		},
		"under an index that nobody signed": func(tb testing.TB, to plugintest.Target) ocispec.Descriptor {
			manifest := imageOf(tb, to, "old", func(c *ocispec.Image, _ *ocispec.Manifest) { c.Config.Labels = said })
			indexAround(tb, to, manifest, map[string]string{ocispec.AnnotationVersion: tag}, tag)
			return manifest
		},
		"nowhere, under an index that nobody signed": func(tb testing.TB, to plugintest.Target) ocispec.Descriptor {
			manifest := imageOf(tb, to, "old", func(*ocispec.Image, *ocispec.Manifest) {})
			indexAround(tb, to, manifest, map[string]string{ocispec.AnnotationVersion: tag}, tag)
			return manifest
		},
		"nowhere": func(tb testing.TB, to plugintest.Target) ocispec.Descriptor {
			return imageOf(tb, to, "old", func(*ocispec.Image, *ocispec.Manifest) {}, tag)
		},
		"nowhere of a raw file": func(tb testing.TB, to plugintest.Target) ocispec.Descriptor {
			return rawFileOf(tb, to, "old", nil, tag)
		},
	}
}

// TestTagSaysAnotherVersion: a version that is denied, or older than what is
// locked or installed, does not come back under the tag of a newer one.
func TestTagSaysAnotherVersion(t *testing.T) {
	t.Parallel()
	denied, err := version.ParseConstraint("<1.1.0")
	if err != nil {
		t.Fatal(err)
	}
	for name, publish := range retagged() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, layout := trusttest.NewKey(t), newLayout(t)
			policy := policyOf(t, installer.Rule{Scope: "**", Signers: []installer.Signer{signerOf(t, key)}, DeniedVersions: []version.Constraint{denied}})
			i := newInstaller(t, policy, installer.WithSource(installer.FromLayout(layout.Name())))
			good := plugintest.Publish(t, layout, plugintest.Plugin{Version: "1.2.0", Body: "good"}, "1.2.0")
			plugintest.Sign(t, layout, key, good.Index)
			ref := reference(t, alias+":1")
			lock, err := i.Lock(t.Context(), installer.Lock{}, ref, installer.LockOptions{})
			if err != nil {
				t.Fatal(err)
			}
			before, err := i.Install(t.Context(), ref, installer.InstallOptions{})
			if err != nil {
				t.Fatal(err)
			}
			plugintest.Sign(t, layout, key, publish(t, layout))
			i = newInstaller(t, policy, installer.WithSource(installer.FromLayout(layout.Name())), installer.WithFolder(i.Folder().Dir()))
			for what, do := range map[string]func() error{
				"verify":  func() error { _, err := i.Verify(t.Context(), ref); return err },
				"install": func() error { _, err := i.Install(t.Context(), ref, installer.InstallOptions{}); return err },
				"install exactly": func() error {
					_, err := i.Install(t.Context(), reference(t, alias+":1.3.0"), installer.InstallOptions{})
					return err
				},
				"lock":    func() error { _, err := i.Lock(t.Context(), lock, ref, installer.LockOptions{}); return err },
				"upgrade": func() error { _, err := i.Upgrade(t.Context(), before, installer.ChangeOptions{}); return err },
				"mirror": func() error {
					_, err := i.Mirror(t.Context(), ref, newLayout(t), installer.MirrorOptions{})
					return err
				},
				"on all platforms": func() error { _, err := i.VerifyAllPlatforms(t.Context(), ref); return err },
			} {
				if err := do(); !errors.Is(err, installer.Reason("mismatch")) && !errors.Is(err, installer.ErrRefused) {
					t.Errorf("%s: %v; want a refusal", what, err)
				}
			}
			taken, err := i.Folder().RunnerTakes(ref)
			if err != nil || taken.Receipt.Version.String() != "1.2.0" {
				t.Errorf("the runner takes %s, %v; want 1.2.0", taken.Receipt.Version, err)
			}
		})
	}
}

// TestVersionOfTheTagAlone: where nothing in the artifact says a version, its tag
// does, and the explanation says so. A rule that denies versions cannot judge it.
func TestVersionOfTheTagAlone(t *testing.T) {
	t.Parallel()
	key, layout := trusttest.NewKey(t), newLayout(t)
	plugintest.Sign(t, layout, key, imageOf(t, layout, "ELF", func(*ocispec.Image, *ocispec.Manifest) {}, "1.3.0"))
	i := newInstaller(t, trusting(t, key), installer.WithSource(installer.FromLayout(layout.Name())))
	verified, err := i.Verify(t.Context(), reference(t, alias+":1"))
	if err != nil || verified.Version.String() != "1.3.0" {
		t.Fatalf("%s, %v", verified.Version, err)
	}
	if text := strings.Join(verified.Explanation, " "); !strings.Contains(text, "no version") {
		t.Errorf("the explanation does not say that the version is not signed: %s", text)
	}
}

// TestUnsignedIndexSaysMore: what an index says that nobody vouches for counts
// for nothing beside the signed manifest in it: not the version, nor what the
// plugin needs, nor who wrote it.
func TestUnsignedIndexSaysMore(t *testing.T) {
	t.Parallel()
	key, layout := trusttest.NewKey(t), newLayout(t)
	manifest := imageOf(t, layout, "ELF", func(c *ocispec.Image, _ *ocispec.Manifest) {
		c.Config.Labels = map[string]string{ocispec.AnnotationVersion: "1.3.0"}
	})
	plugintest.Sign(t, layout, key, manifest)
	manifest.Annotations = map[string]string{artifact.AnnotationExecutable: "sha256:" + strings.Repeat("0", 64)}
	indexAround(t, layout, manifest, map[string]string{
		ocispec.AnnotationSource: "https://evil.test", artifact.AnnotationMetadata: `{"minimumRunner":"99.9"}`,
	}, "1.3.0")
	i := newInstaller(t, trusting(t, key), installer.WithSource(installer.FromLayout(layout.Name())))
	verified, err := i.Verify(t.Context(), reference(t, alias+":1"))
	if err != nil {
		t.Fatal(err)
	}
	if verified.Annotation(ocispec.AnnotationSource) != "" || verified.Executable != "" || strings.Contains(strings.Join(verified.Explanation, " "), "99.9") {
		t.Errorf("source %q, executable %q, %q", verified.Annotation(ocispec.AnnotationSource), verified.Executable, verified.Explanation)
	}
	// For another platform than the manifest's own config says, it is refused.
	manifest.Platform, manifest.Annotations = nil, nil
	wrong := newLayout(t)
	other := imageOf(t, wrong, "ELF", func(c *ocispec.Image, _ *ocispec.Manifest) {
		c.Platform = ocispec.Platform{OS: "linux", Architecture: "s390x"}
		c.Config.Labels = map[string]string{ocispec.AnnotationVersion: "1.3.0"}
	})
	plugintest.Sign(t, wrong, key, other)
	indexAround(t, wrong, other, nil, "1.3.0")
	i = newInstaller(t, trusting(t, key), installer.WithSource(installer.FromLayout(wrong.Name())))
	if _, err := i.Verify(t.Context(), reference(t, alias+":1")); !errors.Is(err, installer.Reason("mismatch")) {
		t.Errorf("an image for another platform: %v", err)
	}
}
