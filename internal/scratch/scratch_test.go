package scratch_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/scratch"
)

// TestMain makes a scratch folder and ends without closing it, if asked to: as a
// process that is killed.
func TestMain(m *testing.M) {
	if os.Getenv("SCRATCH_AND_DIE") != "" {
		if _, err := scratch.New(); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestNew: a folder is there until it is closed, and what a killed process left
// is removed by the next, but nothing that is in use or has another name.
func TestNew(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	first, err := scratch.New()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "SCRATCH_AND_DIE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	other := filepath.Join(temp, "other", ".lock")
	write(t, other, "")
	if left := scratches(t, temp); left != 2 {
		t.Fatalf("%d folders, want that of the first and that of the process that ended", left)
	}
	second, err := scratch.New()
	if err != nil {
		t.Fatal(err)
	}
	if left := scratches(t, temp); left != 2 {
		t.Errorf("%d folders, want the first and the second", left)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	if left := scratches(t, temp); left != 0 {
		t.Errorf("%d folders after both were closed", left)
	}
	if _, err := os.Stat(other); errors.Is(err, fs.ErrNotExist) {
		t.Error("another folder was removed")
	}
}

func scratches(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "fleeting-plugin-*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestMany: folders that are made, removed and swept at the same time do not
// disturb each other.
func TestMany(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				folder, err := scratch.New()
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(os.WriteFile(filepath.Join(folder.Dir, "file"), nil, 0o600), folder.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left := scratches(t, temp); left != 0 {
		t.Errorf("%d folders are left", left)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}
