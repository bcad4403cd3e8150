//go:build !windows

package access_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/access"
)

func letIn(t *testing.T, path string, write, read bool) {
	t.Helper()
	mode := fs.FileMode(0o700)
	if write {
		mode |= 0o002
	}
	if read {
		mode |= 0o004
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if got, err := access.Of(dir); err != nil || got.Write == "" || got.Read == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestLink: where a link leads may change at any time.
func TestLink(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if err := access.Guarded(link); !errors.Is(err, access.ErrOthers) {
		t.Errorf("a link: %v", err)
	}
}
