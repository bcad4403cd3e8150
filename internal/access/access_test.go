package access_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/access"
)

// TestAccess goes through who may write and read; letIn is written for each system.
func TestAccess(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ write, read bool }{
		"no one else": {}, "others read": {read: true}, "others write": {write: true}, "others do both": {write: true, read: true},
	} {
		for _, folder := range []bool{true, false} {
			path := filepath.Join(t.TempDir(), "it")
			put := func() error { return os.Mkdir(path, 0o700) }
			if !folder {
				put = func() error { return os.WriteFile(path, nil, 0o600) }
			}
			if err := put(); err != nil {
				t.Fatal(err)
			}
			letIn(t, path, test.write, test.read)
			got, err := access.Of(path)
			if err != nil || (got.Write != "") != test.write || (got.Read != "") != test.read {
				t.Errorf("%s, folder %v: got %+v, %v", name, folder, got, err)
			}
			if folder {
				if err := access.Guarded(path); errors.Is(err, access.ErrOthers) != test.write {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

func TestGuarded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := access.Guarded(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := access.Guarded(file); !errors.Is(err, access.ErrOthers) {
		t.Errorf("a file: %v", err)
	}
}
