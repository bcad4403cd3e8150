//go:build !windows

package access_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/access"
)

// TestWay finds who may change a file by way of the folders and links that lead to
// it.
func TestWay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, dir string)
		want   []string
	}{
		"guarded":                {func(*testing.T, string) {}, nil},
		"the file":               {mode("a/b/file", 0o666), []string{"a/b/file"}},
		"the file, by its group": {mode("a/b/file", 0o620), []string{"a/b/file"}},
		"its folder":             {mode("a/b", 0o777), []string{"a/b"}},
		"a folder above":         {mode("a", 0o772), []string{"a"}},
		"several":                {func(t *testing.T, dir string) { mode("a", 0o777)(t, dir); mode("a/b/file", 0o602)(t, dir) }, []string{"a", "a/b/file"}},
		"a folder in which others may add, as /tmp": {mode("a", 0o777|os.ModeSticky), nil},
		"no file, and a folder where others may put one": {func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "a/b/file")))
			mode("a/b", 0o777)(t, dir)
		}, []string{"a/b"}},
		"no folder": {func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, "a"))) }, nil},
		"behind a link": {func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "a/b"), filepath.Join(dir, "real")))
			must(t, os.Symlink("../real", filepath.Join(dir, "a/b")))
			mode("real", 0o777)(t, dir)
		}, []string{"real"}},
		"a link that others may change": {func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "a/b"), filepath.Join(dir, "real")))
			must(t, os.Symlink(filepath.Join(dir, "real"), filepath.Join(dir, "a/b")))
			mode("a", 0o777)(t, dir)
		}, []string{"a"}},
		"a file that is a link": {func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "a/b/file"), filepath.Join(dir, "other")))
			must(t, os.Symlink("../../other", filepath.Join(dir, "a/b/file")))
			mode("other", 0o666)(t, dir)
		}, []string{"other"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, "a/b/file"), nil, 0o600))
			test.change(t, dir)
			found, err := access.Way(filepath.Join(dir, "a/b/file"))
			must(t, err)
			var got []string
			for _, w := range found {
				rel, err := filepath.Rel(dir, w.Path)
				must(t, err)
				got = append(got, rel)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func mode(name string, mode os.FileMode) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		must(t, os.Chmod(filepath.Join(dir, name), mode))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWayInCircles: links that lead to each other end.
func TestWayInCircles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Symlink("b", filepath.Join(dir, "a")))
	must(t, os.Symlink("a", filepath.Join(dir, "b")))
	if _, err := access.Way(filepath.Join(dir, "a")); err != nil {
		t.Error(err)
	}
}
