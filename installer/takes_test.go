package installer_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	runner "gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/installer"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
)

// runnerGets fails unless the runner's own code takes the version for the alias,
// and [installer.Folder.RunnerTakes] says so.
func (s *locksite) runnerGets(t *testing.T, constraint, version string) {
	t.Helper()
	folder := s.installer.Folder()
	want := filepath.Join(folder.Dir(), filepath.FromSlash(alias), version, program())
	if got, err := runner.LookPath(alias+":"+constraint, folder.Dir()); err != nil || got != want {
		t.Errorf("the runner takes %s, %v; want %s", got, err, want)
	}
	if got, err := folder.RunnerTakes(reference(t, alias+":"+constraint)); err != nil || got.Path != want {
		t.Errorf("RunnerTakes gives %s, %v; want %s", got.Path, err, want)
	}
}

// TestDowngrade holds that a downgrade is one: the runner takes the greatest
// version that satisfies its reference, so that the newer one has to go.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	installed := s.mustInstall(t)
	withdraw(t, s)
	if _, err := s.installer.Upgrade(t.Context(), installed, installer.ChangeOptions{}); !errors.Is(err, installer.Reason("downgrade")) {
		t.Errorf("got %v; want downgrade", err)
	}
	s.runnerGets(t, "1", "1.2.3")
	got, err := s.installer.Upgrade(t.Context(), installed, installer.ChangeOptions{AllowDowngrade: true})
	if err != nil || got.Receipt.Version.String() != "1.1.0" {
		t.Errorf("%+v, %v", got, err)
	}
	s.runnerGets(t, "1", "1.1.0")
}

// TestLockedDowngrade holds that what a lock has is what the runner takes, so
// that a lock withdraws a bad release; what the reference does not name stays.
func TestLockedDowngrade(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	lock, err := s.lock(t, installer.Lock{}, installer.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.mustInstall(t)
	s.publish(t, "1.3.0", s.key, "bad")
	s.mustInstall(t)
	s.publish(t, "2.0.0", s.key, "other")
	if _, err := s.installer.Install(t.Context(), reference(t, s.registry.Host+"/team/plugin:2"), installer.InstallOptions{As: alias}); err != nil {
		t.Fatal(err)
	}
	s.runnerGets(t, "1", "1.3.0")
	for range 2 { // found, then: nothing to do
		if _, err := s.installer.InstallLocked(t.Context(), lock, s.ref); err != nil {
			t.Fatal(err)
		}
		s.runnerGets(t, "1", "1.2.3")
		s.runnerGets(t, "latest", "2.0.0")
	}
	s.mustInstall(t)
	if _, err := s.installer.Folder().Uninstall(t.Context(), reference(t, alias+":1.2.3")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.installer.InstallLocked(t.Context(), lock, s.ref); err != nil { // installed anew
		t.Fatal(err)
	}
	s.runnerGets(t, "1", "1.2.3")
	// Two entries that the runner cannot tell apart are refused, and nothing goes.
	newer, err := s.installer.Lock(t.Context(), lock, reference(t, s.registry.Host+"/team/plugin:1.3"), installer.LockOptions{As: alias})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.installer.InstallLocked(t.Context(), newer, s.ref); !errors.Is(err, installer.Reason("shadowed")) {
		t.Errorf("got %v; want shadowed", err)
	}
}

// TestShadowed holds that nothing is called installed while the runner takes
// something else, of which nothing is known; and that this is not removed.
func TestShadowed(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	lock, err := s.lock(t, installer.Lock{}, installer.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(s.installer.Folder().Dir(), filepath.FromSlash(alias), "1.9.9")
	writeExecutable(t, filepath.Join(other, program()), "by others")
	opts := installer.InstallOptions{As: alias}
	if _, err := s.installer.Install(t.Context(), s.ref, opts); !errors.Is(err, installer.Reason("shadowed")) || !errors.Is(err, installer.ErrRefused) {
		t.Errorf("install: got %v; want shadowed", err)
	}
	if _, err := s.installer.InstallLocked(t.Context(), lock, s.ref); !errors.Is(err, installer.Reason("shadowed")) {
		t.Errorf("locked: got %v; want shadowed", err)
	}
	s.runnerGets(t, "1", "1.9.9")
	exact := reference(t, s.registry.Host+"/team/plugin:1.2.3")
	installed, err := s.installer.Install(t.Context(), exact, opts)
	if err != nil {
		t.Errorf("an exact version is not shadowed: %v", err)
	}
	s.runnerGets(t, "1.2.3", "1.2.3")
	if _, err := s.installer.Ensure(t.Context(), s.ref, opts); !errors.Is(err, installer.Reason("shadowed")) {
		t.Errorf("ensure: got %v; want shadowed", err)
	}
	if _, err := s.installer.InstallLocked(t.Context(), lock, s.ref); !errors.Is(err, installer.Reason("shadowed")) {
		t.Errorf("locked, present: got %v; want shadowed", err)
	}
	installed.Receipt.Reference = s.ref
	if _, err := s.installer.Upgrade(t.Context(), installed, installer.ChangeOptions{AllowDowngrade: true}); !errors.Is(err, installer.Reason("shadowed")) {
		t.Errorf("upgrade: got %v; want shadowed", err)
	}
	if got := readFile(t, filepath.Join(other, program())); got != "by others" {
		t.Errorf("what others installed is %q", got)
	}
}

// TestFoldersAsTheRunnerReadsThem holds that a folder which is a version to the
// runner is one to RunnerTakes, and no other.
func TestFoldersAsTheRunnerReadsThem(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	s.mustInstall(t)
	folder := s.installer.Folder()
	base := filepath.Join(folder.Dir(), filepath.FromSlash(alias))
	for _, name := range []string{
		"1.09.9", "01.9.9", "1.+9.9", "1.9.-9", "1.9.9+x", "1.9.9-rc.1", "1.9.9-rc+x", "1.9.9-", "v1.9.9", "1.9.9.9",
		"1.99999999999999999999.0", "1.9.9!x", "deeper/1.9.9", "deeper/01.9.9",
	} {
		other := filepath.Join(base, filepath.FromSlash(name))
		writeExecutable(t, filepath.Join(other, program()), "by others")
		want, err := runner.LookPath(alias+":1", folder.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := folder.RunnerTakes(reference(t, alias+":1")); err != nil || got.Path != want {
			t.Errorf("beside %s: %s, %v; the runner takes %s", name, got.Path, err, want)
		}
		if err := os.RemoveAll(other); err != nil {
			t.Fatal(err)
		}
	}
}
