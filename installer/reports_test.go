package installer_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// TestSignedAndPrivate reads signatures with the credentials that the plugin is
// read with. INTEROP 20: https://github.com/falcosecurity/falcoctl/pull/891
func TestSignedAndPrivate(t *testing.T) {
	t.Parallel()
	registry, key := registrytest.New(t, registrytest.WithPassword("user", "secret")), trusttest.NewKey(t)
	for password, want := range map[string]error{"secret": nil, "": installer.ErrUnauthorized} {
		private, err := installer.NewRegistries(installer.RegistryOptions{
			Credentials: func(context.Context, string) (installer.Credential, error) {
				return installer.Credential{Username: "user", Password: password}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ref := reference(t, registry.Host+"/team/plugin:1.2.3")
		if want == nil {
			src, err := private.Open(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			to, ok := src.(plugintest.Target)
			if !ok {
				t.Fatalf("%T takes no pushes", src)
			}
			p := plugintest.Publish(t, to, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
			plugintest.Sign(t, to, key, p.Index)
		}
		i := newInstaller(t, trusting(t, key), installer.WithSource(private.Open))
		if _, err := i.Install(t.Context(), ref, installer.InstallOptions{As: alias}); !errors.Is(err, want) {
			t.Errorf("password %q: got %v; want %v", password, err, want)
		}
	}
}

// TestEveryFormOfReference holds that what is not signed is refused in whatever
// form it is asked for. INTEROP 19: https://github.com/falcosecurity/falcoctl/issues/893
func TestEveryFormOfReference(t *testing.T) {
	t.Parallel()
	registry := registrytest.New(t)
	p := plugintest.Publish(t, repository(t, registry.Host, "team/plugin"), plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3", "v1.2.3", "1.2", "1", "latest")
	manifest := p.Manifests[artifact.HostPlatform().String()].Digest.String()
	for _, form := range []string{
		"", ":latest", ":1", ":1.2", ":1.2.3", ":v1.2.3", ":>=1 <2", ":~1.2", "@" + p.Index.Digest.String(), "@" + manifest,
		":1@" + p.Index.Digest.String(), ":1.2.3@" + manifest,
	} {
		i := newInstaller(t, trusting(t, trusttest.NewKey(t)))
		_, err := i.Install(t.Context(), reference(t, registry.Host+"/team/plugin"+form), installer.InstallOptions{As: alias})
		if !errors.Is(err, installer.Reason("unsigned")) {
			t.Errorf("%q: got %v; want unsigned", form, err)
		}
		mustBeEmpty(t, i.Folder().Dir())
	}
}

// TestProtocol refuses a plugin that no runner can talk to, and tells which runner
// a plugin needs. INTEROP 35: https://github.com/falcosecurity/plugins/issues/264
func TestProtocol(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]error{
		`{"protocol":0,"minimumRunner":"17.9"}`: nil,
		`{"protocol":1}`:                        installer.Reason("not-plugin"),
		`{"protocol":`:                          installer.Reason("not-plugin"),
	} {
		layout := newLayout(t)
		plugintest.Publish(t, layout, plugintest.Plugin{Version: "1.0.0", Index: func(index *ocispec.Index) {
			index.Annotations = map[string]string{artifact.AnnotationMetadata: said}
		}}, "1.0.0")
		i := newInstaller(t, installer.Policy{}, installer.WithSource(installer.FromLayout(layout.Name())))
		r, err := i.Resolve(t.Context(), reference(t, alias))
		if !errors.Is(err, want) || want == nil && !strings.Contains(strings.Join(r.Explanation, " "), `"17.9" or newer`) {
			t.Errorf("%s: %v, %v; want %v", said, r.Explanation, err, want)
		}
	}
}

// TestFolderCannotBeWritten installs where it cannot: an error, and nothing that
// looks installed.
func TestFolderCannotBeWritten(t *testing.T) {
	t.Parallel()
	layout, key := newLayout(t), trusttest.NewKey(t)
	p := plugintest.Publish(t, layout, plugintest.Plugin{Version: "1.2.3", Body: "ELF"}, "1.2.3")
	plugintest.Sign(t, layout, key, p.Index)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	folders := []string{file, filepath.Join(file, "beneath")}
	if _, err := os.Stat("/sys/kernel"); err == nil {
		folders = append(folders, "/sys/kernel/plugins") // takes no folders, whoever asks
	}
	for _, folder := range folders {
		i := newInstaller(t, trusting(t, key), installer.WithFolder(folder), installer.WithSource(installer.FromLayout(layout.Name())))
		installed, err := i.Install(t.Context(), reference(t, alias), installer.InstallOptions{})
		if err == nil {
			t.Errorf("%s: %+v", folder, installed)
		}
	}
}
