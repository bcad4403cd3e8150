package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// TestRenameBesideReader: a file that another process reads at this moment is
// replaced as soon as it is closed. Elsewhere than on Windows it is at once.
func TestRenameBesideReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write(t, path, "old")
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- durable.WriteFile(path, []byte("new"), 0o644) }()
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"file": "new"}, tree(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRecoverAgain: to recover twice, or where nothing was interrupted, changes
// nothing.
func TestRecoverAgain(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	write(t, at("stage.old/a"), "1")
	write(t, at("stage/b"), "2")
	for range 2 {
		if err := durable.Recover(at("stage"), at("target")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"target/a": "1", "stage/b": "2"}, tree(t, root)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"1.2.3.old": "1.2.3", "1.2.3.old.part": "1.2.3", "1.2.3.part": "1.2.3", "1.2.3": "", ".new-1": "", "stage-1": ""} {
		if dir, ok := durable.Interrupted(name); ok != (want != "") || ok && dir != want {
			t.Errorf("%s: %q, %v", name, dir, ok)
		}
	}
}

// TestNotInUse: an error that has nothing to do with other processes is not waited
// for.
func TestNotInUse(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, os.ErrNotExist, errors.New("in use")} {
		if durable.InUse(err) {
			t.Errorf("%v", err)
		}
	}
}
