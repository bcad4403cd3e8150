package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSwap is what file systems get that cannot exchange folders.
func TestSwap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stage, target := filepath.Join(dir, "stage"), filepath.Join(dir, "target")
	if err := errors.Join(os.MkdirAll(filepath.Join(stage, "new"), 0o755), os.MkdirAll(filepath.Join(target, "old"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := swap(stage, target); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	want := []string{filepath.Join(stage, "old"), filepath.Join(target, "new")}
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err := swap(filepath.Join(dir, "none"), target); err == nil {
		t.Error("swapped with nothing")
	}
	if _, err := os.Stat(filepath.Join(target, "new")); err != nil {
		t.Errorf("not put back: %v", err)
	}
}

// TestReplace is what folders get that cannot be moved.
func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stage, target := filepath.Join(dir, "stage"), filepath.Join(dir, "1.0.0")
	leftover := filepath.Join(dir, ".new-1.0.0", "half")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(stage, "new"), 0o755), os.MkdirAll(filepath.Join(target, "old"), 0o755), os.MkdirAll(leftover, 0o755),
	); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to move, and nothing is lost
		err := replace(stage, target)
		found, globErr := filepath.Glob(filepath.Join(dir, "*", "*"))
		if diff := cmp.Diff([]string{filepath.Join(target, "new")}, found); diff != "" || globErr != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

// TestTakeFiles is what folders get in which a file runs, where that keeps them
// from being moved: all files go, or none.
func TestTakeFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "1.0.0"), filepath.Join(dir, "aside")
	for _, name := range []string{"plugin", "lib/a/data", "lib/b"} {
		path := filepath.Join(from, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	blocked := filepath.Join(to+part, "lib", "b", "in the way")
	if err := os.MkdirAll(blocked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := takeFiles(from, to); err == nil {
		t.Error("no error for a file that cannot be moved")
	}
	for _, name := range []string{"plugin", "lib/a/data", "lib/b"} {
		if _, err := os.Stat(filepath.Join(from, filepath.FromSlash(name))); err != nil {
			t.Errorf("not put back: %v", err)
		}
	}
	if err := errors.Join(os.RemoveAll(to+part), takeFiles(from, to)); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if diff := cmp.Diff([]string{to}, found); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
