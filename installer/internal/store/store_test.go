package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/store"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
)

func TestNewPlugin(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"registry.test/a", "127.0.0.1/team/plugin", "registry.gitlab.com/gitlab-org/fleeting/plugins/aws"} {
		if p, err := store.NewPlugin(name); err != nil || p.Name() != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "a", "registry.test:5000/a", "registry.test/../a", "/a", "registry.test/a/", "registry.test/con", "registry.test/aux.x",
		"registry.test/1.2.3", "registry.test/1.2.3/a", "registry.test/01.2.3-rc", "1.2.3/a", "registry.test/.fleeting-plugin",
		".fleeting-plugin/staging", "registry.test/A B",
	} {
		if _, err := store.NewPlugin(name); !errors.Is(err, store.ErrName) {
			t.Errorf("%q: got %v; want ErrName", name, err)
		}
	}
}

// TestStageNeedsAdmission holds that what was not admitted gets no place to be
// put together in.
func TestStageNeedsAdmission(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := store.NewPlugin("registry.test/a")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := s.Lock(t.Context(), plugin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := s.Stage(lock, admission.Admission{}); !errors.Is(err, admission.ErrRefused) {
		t.Errorf("got %v; want ErrRefused", err)
	}
}

// TestSweep removes leftovers, but not those of somebody who is at work.
func TestSweep(t *testing.T) {
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
	locks, err := os.ReadDir(filepath.Join(s.Root(), ".fleeting-plugin", "locks"))
	if err != nil || len(locks) != 1 {
		t.Fatalf("%v, %v", locks, err)
	}
	staging := filepath.Join(s.Root(), ".fleeting-plugin", "staging")
	for _, name := range []string{locks[0].Name(), "left"} {
		if err := os.MkdirAll(filepath.Join(staging, name, "stage-1"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Sweep(); err != nil || n != 1 {
		t.Errorf("swept %d, %v; want 1", n, err)
	}
	if _, err := os.Stat(filepath.Join(staging, locks[0].Name())); err != nil {
		t.Errorf("swept from under somebody at work: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Sweep(); err != nil || n != 1 {
		t.Errorf("swept %d, %v; want 1", n, err)
	}
}

// TestBuildMetadata holds that a version is stored without it: the runner does not
// find a folder with a plus in its name.
func TestBuildMetadata(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := store.NewPlugin("registry.test/a")
	if err != nil {
		t.Fatal(err)
	}
	v, err := version.Parse("1.2.3-RC.1+build")
	if err != nil {
		t.Fatal(err)
	}
	if path, err := s.Path(plugin, v); err != nil || filepath.Base(path) != "1.2.3-!r!c.1" {
		t.Errorf("%q, %v", path, err)
	}
}
