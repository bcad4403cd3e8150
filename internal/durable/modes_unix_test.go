//go:build !windows

package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

func sameMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	if got := mode(t, path).Perm(); got != want {
		t.Errorf("%s has mode %v, want %v", path, got, want)
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

// TestMkdirAllShared: the setgid bit that a folder inherits stays, and the mode of
// a folder that is there.
func TestMkdirAllShared(t *testing.T) {
	t.Parallel()
	shared := filepath.Join(t.TempDir(), "shared")
	if err := errors.Join(os.Mkdir(shared, 0o700), os.Chmod(shared, 0o700|fs.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(shared, "a/b")
	if err := durable.MkdirAll(deep, 0o777); err != nil {
		t.Fatal(err)
	}
	if got, want := mode(t, deep), fs.ModeDir|fs.ModeSetgid|0o777; got != want {
		t.Errorf("mode %v, want %v", got, want)
	}
	sameMode(t, shared, 0o700)
}

func TestLinkToNowhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nowhere := filepath.Join(dir, "nowhere")
	if err := os.Symlink(filepath.Join(dir, "none"), nowhere); err != nil {
		t.Fatal(err)
	}
	if err := durable.MkdirAll(nowhere, 0o755); err == nil {
		t.Error("a link that leads nowhere is taken for a folder")
	}
	if err := durable.SyncDir(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("flushing nothing: %v", err)
	}
}
