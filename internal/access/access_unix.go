//go:build !windows

package access

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// of goes by the mode and the owner. The user's own group counts as others: who is
// in it is not known.
func of(path string) (Access, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Access{}, err
	}
	mode := info.Mode().Perm()
	return Access{Write: who(info, mode, 0o020, 0o002), Read: who(info, mode, 0o040, 0o004)}, nil
}

func who(info fs.FileInfo, mode, group, others fs.FileMode) string {
	switch {
	case mode&others != 0:
		return "everyone (" + mode.String() + ")"
	case mode&group != 0:
		return "its group (" + mode.String() + ")"
	}
	return foreignOwner(info)
}

// foreignOwner names the owner, if it is neither the user of this process nor root.
func foreignOwner(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 || int64(stat.Uid) == int64(os.Geteuid()) {
		return ""
	}
	id := strconv.FormatUint(uint64(stat.Uid), 10)
	if owner, err := user.LookupId(id); err == nil {
		return fmt.Sprintf("its owner %s", owner.Username)
	}
	return "its owner, user " + id
}

// replaces says who may put something else at a path. In a folder on the way that
// has the sticky bit, as /tmp, others may only add, and not replace what is
// another's.
func replaces(path string, info fs.FileInfo, last bool) (string, error) {
	if info.IsDir() && !last && info.Mode()&fs.ModeSticky != 0 {
		return foreignOwner(info), nil
	}
	found, err := of(path)
	return found.Write, err
}
