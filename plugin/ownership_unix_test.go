//go:build unix

package plugin_test

import (
	"os"
	"strings"
	"testing"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// TestALockFolderThatOthersCanWriteTo is refused, with the setting that helps.
func TestALockFolderThatOthersCanWriteTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sim.Options{})
	if err := os.Mkdir(w.locks(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.locks(), 0o777); err != nil {
		t.Fatal(err)
	}
	group := w.newGroup(t, nil)
	if _, err := group.Init(t.Context(), w.log.logger(), settings()); err == nil || !strings.Contains(err.Error(), "set lock_dir") {
		t.Errorf("init: %v", err)
	}
}
