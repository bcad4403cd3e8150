//go:build unix

package ociregistry_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// TestLayoutOfDevices holds that a layout is not read where it has a pipe or a
// device in place of a file: reading would never end.
func TestLayoutOfDevices(t *testing.T) {
	t.Parallel()
	blob := describe(ocispec.MediaTypeImageManifest, "{}")
	for _, name := range []string{"blobs/sha256/" + blob.Digest.Encoded(), ocispec.ImageIndexFile} {
		for what, make := range map[string]func(path string) error{
			"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o644) },
			"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			dir := writeLayout(t, []ocispec.Descriptor{blob}, "{}")
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := errors.Join(os.Remove(path), make(path)); err != nil {
				t.Fatal(err)
			}
			layout, err := ociregistry.OpenLayout(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := layout.Referrers(t.Context(), blob); !errors.Is(err, ociregistry.ErrInvalid) {
				t.Errorf("%s is a %s: %v", name, what, err)
			}
		}
	}
}
