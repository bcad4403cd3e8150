package installer_test

import (
	"errors"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// TestAnnouncedExecutable holds that an executable that is not the one which the
// signed index announces is refused, and an announcement that cannot be read too.
func TestAnnouncedExecutable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		announce string
		want     error
	}{
		"another executable": {digest.FromString("another").String(), installer.Reason("mismatch")},
		"not a digest":       {"sha256:zz", installer.Reason("not-plugin")},
		"another algorithm":  {digest.SHA512.FromString("x").String(), installer.Reason("not-plugin")},
		"not announced":      {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, layout := trusttest.NewKey(t), newLayout(t)
			p := plugintest.Publish(t, layout, plugintest.Plugin{Version: "1.0.0", Body: "ELF", Index: func(index *ocispec.Index) {
				for n := range index.Manifests {
					index.Manifests[n].Annotations = map[string]string{artifact.AnnotationExecutable: test.announce}
				}
			}}, "1.0.0")
			plugintest.Sign(t, layout, key, p.Index)
			i := newInstaller(t, trusting(t, key), installer.WithSource(installer.FromLayout(layout.Name())))
			_, err := i.Install(t.Context(), reference(t, alias+":1.0.0"), installer.InstallOptions{})
			if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Errorf("got %v; want %v", err, test.want)
			}
			if test.want != nil {
				mustBeEmpty(t, i.Folder().Dir())
			}
		})
	}
}

// TestLockedExecutable holds that a lock's digest of the executable decides, also
// where the publisher announces none.
func TestLockedExecutable(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	p := plugintest.Publish(t, s.repo, plugintest.Plugin{Version: "1.2.3", Body: "ELF", Index: func(index *ocispec.Index) {
		for n := range index.Manifests {
			index.Manifests[n].Annotations = nil
		}
	}}, "1.2.3")
	plugintest.Sign(t, s.repo, s.key, p.Index)
	lock, err := s.lock(t, installer.Lock{}, installer.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	entry := lock.Plugins()[0]
	for n := range entry.Platforms {
		if entry.Platforms[n].Executable != "" {
			t.Errorf("%+v: nobody announced it", entry.Platforms[n])
		}
		entry.Platforms[n].Executable = digest.FromString("another")
	}
	if _, err := s.installer.InstallLocked(t.Context(), lock.With(entry), s.ref); !errors.Is(err, installer.Reason("mismatch")) {
		t.Errorf("got %v; want mismatch", err)
	}
	mustBeEmpty(t, s.installer.Folder().Dir())
}
