package installer_test

import (
	"errors"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
)

// TestNoFolder holds that an installer without a folder says so, before it asks
// anybody.
func TestNoFolder(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	lock, err := s.lock(t, installer.Lock{}, installer.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	installed := s.mustInstall(t)
	i, err := installer.New(s.policy(t), installer.WithSource(retryingRegistries(t).Open))
	if err != nil {
		t.Fatal(err)
	}
	s.registry.Gate.Forget()
	for name, do := range map[string]func() error{
		"install": func() error { _, err := i.Install(t.Context(), s.ref, installer.InstallOptions{}); return err },
		"ensure":  func() error { _, err := i.Ensure(t.Context(), s.ref, installer.InstallOptions{}); return err },
		"locked":  func() error { _, err := i.InstallLocked(t.Context(), lock, s.ref); return err },
		"upgrade": func() error { _, err := i.Upgrade(t.Context(), installed, installer.ChangeOptions{}); return err },
		"foreign": func() error {
			_, err := i.Upgrade(t.Context(), installer.Installed{Foreign: true}, installer.ChangeOptions{})
			return err
		},
	} {
		if err := do(); !errors.Is(err, installer.Reason("no-folder")) {
			t.Errorf("%s: got %v; want no-folder", name, err)
		}
	}
	if requests := s.registry.Gate.Requests(); len(requests) > 0 {
		t.Errorf("asked for %v", requests)
	}
}
