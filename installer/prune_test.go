package installer_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
)

// TestPruneFailsClosed holds that nothing is removed when it cannot be told what
// must stay.
func TestPruneFailsClosed(t *testing.T) {
	t.Parallel()
	s := newLocksite(t)
	folder := s.installer.Folder()
	s.mustInstall(t)
	lock, err := s.lock(t, installer.Lock{}, installer.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.publish(t, "1.3.0", s.key, "newer")
	s.mustInstall(t)
	entry := lock.Plugins()[0]
	entry.As = alias + ":1"
	removed, err := folder.Prune(t.Context(), installer.PruneOptions{Keep: 1, Locked: installer.Lock{}.With(entry)})
	if !errors.Is(err, installer.Reason("reference")) || len(removed) != 0 {
		t.Errorf("a lock that cannot be understood: removed %d, %v; want reference", len(removed), err)
	}
	// What the folder cannot have needs no keeping.
	removed, err = folder.Prune(t.Context(), installer.PruneOptions{
		Keep: 1, Locked: lock, Referenced: []installer.Reference{s.ref, reference(t, alias+":9")},
	})
	if err != nil || len(removed) != 0 {
		t.Errorf("removed %d, %v; want nothing, as the lock has it", len(removed), err)
	}
	// A damaged receipt makes a version somebody else's, which stays.
	receipt := filepath.Join(folder.Dir(), filepath.FromSlash(alias), "1.2.3", "fleeting-plugin.receipt.json")
	if err := os.WriteFile(receipt, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if removed, err = folder.Prune(t.Context(), installer.PruneOptions{Keep: 1, Locked: lock}); err != nil || len(removed) != 0 {
		t.Errorf("removed %d, %v; want nothing", len(removed), err)
	}
}

// mustInstall installs what the site's reference stands for.
func (s *locksite) mustInstall(t *testing.T) installer.Installed {
	t.Helper()
	installed, err := s.installer.Install(t.Context(), s.ref, installer.InstallOptions{As: alias})
	if err != nil {
		t.Fatal(err)
	}
	return installed
}
