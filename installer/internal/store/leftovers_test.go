package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/store"
)

// TestLeftoversBesideVersions: what a kill in the middle of a replacement leaves
// goes when somebody works on the plugin again, and nothing else does.
func TestLeftoversBesideVersions(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := store.NewPlugin("registry.test/a")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(s.Root(), "registry.test", "a")
	for _, name := range []string{"1.2.3", ".new-1.2.4", "new-1.2.3", "other"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "plugin"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, ".new-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	lock, err := s.Lock(t.Context(), plugin)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if diff := cmp.Diff([]string{".new-file", "1.2.3", "new-1.2.3", "other"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSweepBesideVersions: the same goes when nobody works on the plugin again,
// also where the kill left no version at all; not from under somebody at work.
func TestSweepBesideVersions(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	busy, err := store.NewPlugin("registry.test/busy")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := s.Lock(t.Context(), busy)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(s.Root(), "registry.test", filepath.FromSlash(name)) }
	for _, name := range []string{"busy/.new-1.0.0", "alone/.new-1.0.0", "deep/er/1.0.0", "deep/er/.new-1.0.1", "deep/er/1.0.0/.new-1"} {
		if err := os.MkdirAll(at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(gone, kept []string) {
		t.Helper()
		if _, err := s.Sweep(); err != nil {
			t.Fatal(err)
		}
		for _, name := range gone {
			if _, err := os.Stat(at(name)); !os.IsNotExist(err) {
				t.Errorf("%s is still there: %v", name, err)
			}
		}
		for _, name := range kept {
			if _, err := os.Stat(at(name)); err != nil {
				t.Error(err)
			}
		}
	}
	sweep([]string{"alone/.new-1.0.0", "deep/er/.new-1.0.1"}, []string{"busy/.new-1.0.0", "deep/er/1.0.0", "deep/er/1.0.0/.new-1"})
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	sweep([]string{"busy/.new-1.0.0"}, nil)
}

// TestLinkBesideVersions: nothing is removed through a link, nor is the link.
func TestLinkBesideVersions(t *testing.T) {
	t.Parallel()
	s, plugin := open(t)
	folder := filepath.Join(s.Root(), "registry.test", "a")
	outside := t.TempDir()
	write(t, filepath.Join(outside, "kept"), "")
	write(t, filepath.Join(folder, "1.2.3", "plugin"), "")
	at := filepath.Join(folder, ".new-1.2.5")
	link(t, outside, at)
	lockedStaging(t, s, plugin)
	for _, path := range []string{at, filepath.Join(outside, "kept")} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestLinkedFolder: the store writes through no link of somebody else.
func TestLinkedFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"registry.test", ".fleeting-plugin"} {
		s, plugin := open(t)
		link(t, t.TempDir(), filepath.Join(s.Root(), name))
		if _, err := s.Lock(t.Context(), plugin); !errors.Is(err, store.ErrSymlink) {
			t.Errorf("%s: %v; want ErrSymlink", name, err)
		}
	}
}
