package durable_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, step := range []struct {
		content string
		mode    fs.FileMode
	}{{"first", 0o666}, {"second", 0o600}, {"", 0o644}} {
		if err := durable.WriteFile(path, []byte(step.content), step.mode); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"file": step.content}, tree(t, dir)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		sameMode(t, path, step.mode)
	}
}

// TestWriteFails: what was there stays, and nothing is left beside it.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "old")
	write(t, filepath.Join(dir, "folder/x"), "x")
	before := tree(t, dir)
	for name, failing := range map[string]func() error{
		"content": func() error {
			return durable.Write(filepath.Join(dir, "file"), 0o644, func(w io.Writer) error {
				_, err := io.WriteString(w, "half")
				return errors.Join(err, broken)
			})
		},
		"a folder in its place": func() error { return durable.WriteFile(filepath.Join(dir, "folder"), nil, 0o644) },
		"no folder":             func() error { return durable.WriteFile(filepath.Join(dir, "none/file"), nil, 0o644) },
	} {
		if err := failing(); err == nil || name == "content" && !errors.Is(err, broken) {
			t.Errorf("%s: got %v", name, err)
		}
		if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
			t.Errorf("%s: (-before +after):\n%s", name, diff)
		}
	}
}

func TestPlaceDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("stage/a"), "1")
	if err := errors.Join(durable.SyncTree(at("stage")), durable.PlaceDir(at("stage"), at("target"))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"target/a": "1"}, tree(t, dir)); diff != "" {
		t.Errorf("new (-want +got):\n%s", diff)
	}
	write(t, at("stage/b"), "2")
	if err := durable.PlaceDir(at("stage"), at("target")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"target/b": "2", "stage/a": "1"}, tree(t, dir)); diff != "" {
		t.Errorf("exchanged (-want +got):\n%s", diff)
	}
	if err := durable.PlaceDir(at("none"), at("target")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing staged: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"target/b": "2", "stage/a": "1"}, tree(t, dir)); diff != "" {
		t.Errorf("after a failure (-want +got):\n%s", diff)
	}
}

func TestTakeDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("1.0.0/a"), "1")
	if err := durable.TakeDir(at("1.0.0"), at("aside")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"aside/a": "1"}, tree(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := durable.TakeDir(at("1.0.0"), at("aside")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing to take: %v", err)
	}
}

func TestMkdirAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep := filepath.Join(dir, "a/b")
	for range 2 {
		if err := durable.MkdirAll(deep, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	sameMode(t, deep, 0o777)
	write(t, filepath.Join(dir, "file"), "")
	if err := durable.MkdirAll(filepath.Join(dir, "file/below"), 0o755); err == nil {
		t.Error("a folder below a file")
	}
}

// tree returns the files beneath a folder with their content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		found[filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator)))] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}
