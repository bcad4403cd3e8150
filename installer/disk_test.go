//go:build !windows

package installer_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// TestUmask installs under umasks that take everything away, and nothing: the
// runner, another user, reads and starts plugins, and nobody else changes them.
// INTEROP C19.
func TestUmask(t *testing.T) {
	t.Parallel()
	for _, mask := range []string{"077", "000", "777"} {
		t.Run(mask, func(t *testing.T) {
			t.Parallel()
			p := newProcesses(t, "plugin")
			cmd, out := p.command(t.Context())
			cmd.Env = append(cmd.Env, "INSTALLER_TEST_UMASK="+mask)
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			seen := 0
			err := filepath.WalkDir(p.folder, func(path string, d fs.DirEntry, err error) error {
				if err != nil || strings.Contains(path, ".fleeting-plugin") {
					return err
				}
				info, err := d.Info()
				want := fs.FileMode(0o644)
				if d.IsDir() || d.Name() == "plugin" {
					want = 0o755
				}
				if err == nil && info.Mode().Perm() != want {
					t.Errorf("%s has mode %v; want %v", path, info.Mode(), want)
				}
				seen++
				return err
			})
			if err != nil || seen < 6 {
				t.Errorf("%d files and folders, %v", seen, err)
			}
		})
	}
}

// TestDiskFull installs where files may not become as large as they are, which
// fails writes as a full disk does: in the middle of the executable, and at the
// receipt. The message says where and how much; the older version stays as it
// is, and nothing else does.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	p := newDiskFull(t)
	for name, size := range map[string]string{"at the executable": "100000", "at the receipt": "300"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := *p
			one.folder = filepath.Join(t.TempDir(), "plugins")
			body := map[string]string{"100000": "large", "300": "small"}[size]
			i := newInstaller(t, p.policy, installer.WithFolder(one.folder))
			older := reference(t, p.registry.Host+"/team/"+body+":1.0.0")
			before, err := i.Install(t.Context(), older, installer.InstallOptions{As: alias})
			if err != nil {
				t.Fatal(err)
			}
			files := tree(t, one.folder)
			cmd, out := one.command(t.Context())
			cmd.Env = append(cmd.Env, "INSTALLER_TEST_FILE_SIZE="+size, "INSTALLER_TEST_CHILD="+p.registry.Host+"/team/"+body+":1.2.3")
			if err := cmd.Run(); err == nil {
				t.Fatalf("installed: %s", out)
			}
			for _, part := range []string{"no space left in " + one.folder, "takes more than the ", alias + " 1.2.3"} {
				if !strings.Contains(out.String(), part) {
					t.Errorf("%s; want %q in it", out, part)
				}
			}
			if strings.Contains(out.String(), "corrupt") {
				t.Errorf("%s; the archive is in order", out)
			}
			if after := tree(t, one.folder); after != files {
				t.Errorf("left behind:\n%s\nwas\n%s", after, files)
			}
			if err := before.Verify(t.Context()); err != nil {
				t.Errorf("the version before: %v", err)
			}
			// With room again it goes on.
			if _, err := i.Install(t.Context(), reference(t, p.registry.Host+"/team/"+body+":1.2.3"), installer.InstallOptions{As: alias}); err != nil {
				t.Error(err)
			}
		})
	}
}

// newDiskFull publishes a large and a small plugin in two versions.
func newDiskFull(t *testing.T) *processes {
	t.Helper()
	key := trusttest.NewKey(t)
	p := &processes{registry: registrytest.New(t), policy: trusting(t, key), key: filepath.Join(t.TempDir(), "cosign.pub")}
	if err := os.WriteFile(p.key, key.PublicPEM(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"large": randomText(1 << 20), "small": "plugin"} {
		for _, version := range []string{"1.0.0", "1.2.3"} {
			repo := repository(t, p.registry.Host, "team/"+name)
			published := plugintest.Publish(t, repo, plugintest.Plugin{Version: version, Body: body}, version)
			plugintest.Sign(t, repo, key, published.Index)
		}
	}
	return p
}
