//go:build !windows

package peers_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/peers"
)

// TestAMemberSurvivesACleanedFolder: what empties temporary folders does not make
// a process look dead for long, and one that is left alone is touched.
func TestAMemberSurvivesACleanedFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks")
	folder := open(t, path)
	now := time.Now()
	self := peers.Self("group")
	member, err := folder.Join(self, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if _, state := folder.Look(self.Generation); state != peers.Unknown {
		t.Errorf("after the cleaning: %v", state)
	}
	if err := member.Renew(now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, state := folder.Look(self.Generation); state != peers.Alive {
		t.Errorf("after it was renewed: %v", state)
	}
	later := now.Add(2 * time.Hour)
	if err := member.Renew(later); err != nil {
		t.Fatal(err)
	}
	for _, ext := range []string{".lock", ".json"} {
		if info, err := os.Stat(filepath.Join(path, self.Generation+ext)); err != nil || info.ModTime().Before(later.Add(-time.Minute)) {
			t.Errorf("%s was not touched: %v, %v", ext, info, err)
		}
	}
	if err := member.Leave(); err != nil {
		t.Fatal(err)
	}
	if _, state := folder.Look(self.Generation); state != peers.Dead {
		t.Errorf("after it left: %v", state)
	}
}
