//go:build !windows

package peers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// ended reports whether no process has the ID any more.
func ended(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// defaultIn is a folder of the user's in the one for temporary files, which is
// there and can be written to wherever the runner starts a plugin: their socket
// is in it.
func defaultIn(name string) string {
	return filepath.Join(os.TempDir(), name+"-"+strconv.Itoa(os.Getuid()))
}

// owned refuses a folder of another user.
func owned(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s belongs to the user with the ID %d", path, owner.Uid)
	}
	return nil
}
