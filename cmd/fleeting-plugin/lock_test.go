package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
)

// TestLockFileThatIsALink: a lock file that is kept elsewhere, such as in a
// repository of configuration, is written there, also when it is not there yet.
func TestLockFileThatIsALink(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"there": true, "not there yet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := filepath.Join(t.TempDir(), "kept.json")
			if before {
				if err := os.WriteFile(kept, []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			link := filepath.Join(t.TempDir(), "lock.json")
			if err := os.Symlink(kept, link); err != nil {
				t.Fatal(err)
			}
			err := writeLock(link, installer.Lock{})
			if info, statErr := os.Lstat(link); err != nil || statErr != nil || info.Mode().Type() != fs.ModeSymlink {
				t.Errorf("the link is gone: %v (%v, %v)", info, err, statErr)
			}
			if content, err := os.ReadFile(kept); err != nil || string(content) == "old" || len(content) == 0 {
				t.Errorf("kept: %q (%v)", content, err)
			}
		})
	}
}
