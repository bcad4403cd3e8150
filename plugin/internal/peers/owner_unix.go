//go:build !windows

package peers

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// nothing is the signal that only asks whether a process is there.
const nothing = syscall.Signal(0)

func userSuffix() string { return "-" + strconv.Itoa(os.Getuid()) }

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
