package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/store"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
)

// asPlugin makes this executable run until its input ends.
const asPlugin = "STORE_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		_, _ = fmt.Fprintln(os.Stdout, "started")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// TestRemoveRunning: the version that the runner is using goes out of sight at
// once, further changes of the plugin do not care, and the next who comes after its
// end removes the rest. On Windows an executable that runs cannot be removed.
func TestRemoveRunning(t *testing.T) {
	t.Parallel()
	s, plugin := open(t)
	v := parse(t, "1.2.3")
	dir, err := s.Path(plugin, v)
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, dir)
	for range 2 { // installed again and removed again while the first still runs
		lock, err := s.Lock(t.Context(), plugin)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Remove(lock, v), lock.Release()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Version(plugin, v); !errors.Is(err, store.ErrNotInstalled) {
			t.Errorf("after its removal: %v", err)
		}
		if _, err := s.Sweep(); err != nil {
			t.Errorf("sweeping beside it: %v", err)
		}
		write(t, filepath.Join(dir, "plugin"), "another")
	}
	stop()
	if _, err := s.Sweep(); err != nil {
		t.Fatal(err)
	}
	staging := filepath.Join(s.Root(), ".fleeting-plugin", "staging")
	if left, err := filepath.Glob(filepath.Join(staging, "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestRecovered: a kill between the two steps in which a version is replaced where
// folders cannot change places, or in the middle of taking its files one by one.
// The next process puts it back, whether it works on the plugin or on all.
func TestRecovered(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]struct{ in, target []string }{
		"taken, the new one not placed":    {in: []string{"stage-1/1.2.3/new", "stage-1/1.2.3.old/plugin", "stage-1/1.2.3.old/lib/data"}},
		"half taken for a replacement":     {in: []string{"stage-1/1.2.3/new", "stage-1/1.2.3.old.part/plugin"}, target: []string{"lib/data"}},
		"half taken for a removal":         {in: []string{"removed-1/1.2.3.part/lib/data"}, target: []string{"plugin"}},
		"all taken one by one":             {in: []string{"removed-1/1.2.3.part/lib/data", "removed-1/1.2.3.part/plugin"}},
		"placed, the old one not yet gone": {in: []string{"stage-1/1.2.3.old/other"}, target: []string{"plugin", "lib/data"}},
	} {
		for _, by := range []string{"lock", "sweep"} {
			t.Run(name+", "+by, func(t *testing.T) {
				t.Parallel()
				s, plugin := open(t)
				v := parse(t, "1.2.3")
				staging := lockedStaging(t, s, plugin)
				dir, err := s.Path(plugin, v)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
					t.Fatal(err)
				}
				for _, file := range left.in {
					write(t, filepath.Join(staging, filepath.FromSlash(file)), filepath.Base(file))
				}
				for _, file := range left.target {
					write(t, filepath.Join(dir, filepath.FromSlash(file)), filepath.Base(file))
				}
				if by == "sweep" {
					_, err = s.Sweep()
				} else {
					lockedStaging(t, s, plugin)
				}
				if err != nil {
					t.Fatal(err)
				}
				for file, want := range map[string]error{"plugin": nil, "lib/data": nil, "new": fs.ErrNotExist, "other": fs.ErrNotExist} {
					if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(file))); !errors.Is(err, want) {
						t.Errorf("%s: %v; want %v", file, err, want)
					}
				}
				if found, err := filepath.Glob(filepath.Join(staging, "*")); err != nil || len(found) > 0 {
					t.Errorf("left behind: %v, %v", found, err)
				}
			})
		}
	}
}

// lockedStaging takes the lock of a plugin, and returns where it is staged.
func lockedStaging(t *testing.T, s *store.Store, plugin store.Plugin) string {
	t.Helper()
	lock, err := s.Lock(t.Context(), plugin)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	locks, err := os.ReadDir(filepath.Join(s.Root(), ".fleeting-plugin", "locks"))
	if err != nil || len(locks) != 1 {
		t.Fatalf("%v, %v", locks, err)
	}
	return filepath.Join(s.Root(), ".fleeting-plugin", "staging", locks[0].Name())
}

func open(t *testing.T) (*store.Store, store.Plugin) {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := store.NewPlugin("registry.test/a")
	if err != nil {
		t.Fatal(err)
	}
	return s, plugin
}

func parse(t *testing.T, text string) version.Version {
	t.Helper()
	v, err := version.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// run starts a copy of this executable in dir, and returns what ends it.
func run(t *testing.T, dir string) (stop func()) {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "plugin.exe")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(path, content, 0o700)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Env = append(os.Environ(), asPlugin+"=1")
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	stop = func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	return stop
}
