//go:build unix

package dist_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
)

// notAFile makes a named pipe, which nobody writes to.
func notAFile(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// unixInput is what only file systems of Unix can hold.
func unixInput() []badInput {
	return []badInput{
		{"not executable", func(t *testing.T, dir string) {
			t.Helper()
			amd64(t, dir)
			chmod(t, filepath.Join(dir, "linux/amd64/plugin"), 0o644)
		}, "linux/amd64/plugin", "is not executable", "chmod +x"},
		{"symbolic link", func(t *testing.T, dir string) {
			t.Helper()
			amd64(t, dir)
			if err := os.Symlink("plugin", filepath.Join(dir, "linux/amd64/alias")); err != nil {
				t.Fatal(err)
			}
		}, "linux/amd64/alias", "is a symbolic link", "copy the file"},
		{"executable is a link", func(t *testing.T, dir string) {
			t.Helper()
			mkdir(t, dir, "linux/amd64")
			if err := os.Symlink(sampleplugin.Build(t, "linux/amd64", "1.0.0"), filepath.Join(dir, "linux/amd64/plugin")); err != nil {
				t.Fatal(err)
			}
		}, "linux/amd64/plugin", "is a symbolic link", "copy the file"},
		{"named pipe", func(t *testing.T, dir string) {
			t.Helper()
			amd64(t, dir)
			if err := syscall.Mkfifo(filepath.Join(dir, "linux/amd64/pipe"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "linux/amd64/pipe", "is not a regular file", "remove it"},
		{"socket", func(t *testing.T, dir string) {
			t.Helper()
			amd64(t, dir)
			// A socket's address is short; it is made elsewhere and moved.
			short, err := os.MkdirTemp("/tmp", "s") //nolint:usetesting // its folder would be too long for a socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(short) })
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(short, "sock"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			if err := os.Rename(filepath.Join(short, "sock"), filepath.Join(dir, "linux/amd64/sock")); err != nil {
				t.Fatal(err)
			}
		}, "linux/amd64/sock", "is not a regular file", "remove it"},
		{"setuid", func(t *testing.T, dir string) {
			t.Helper()
			amd64(t, dir)
			chmod(t, filepath.Join(dir, "linux/amd64/plugin"), 0o755|os.ModeSetuid)
		}, "linux/amd64/plugin", "has a setuid", "chmod u-s,g-s,-t"},
		{"names that differ in case", func(t *testing.T, dir string) {
			t.Helper()
			amd64(t, dir)
			sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/Plugin"), nil, 0o644)
		}, "linux/amd64/plugin", "only in upper and lower case", "rename one"},
	}
}
