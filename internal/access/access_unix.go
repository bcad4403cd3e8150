//go:build !windows

package access

import (
	"io/fs"
	"os"
)

// of goes by the mode. The user's own group counts as others: who is in it is not
// known.
func of(path string) (Access, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Access{}, err
	}
	mode := info.Mode().Perm()
	return Access{Write: who(mode, 0o020, 0o002), Read: who(mode, 0o040, 0o004)}, nil
}

func who(mode, group, others fs.FileMode) string {
	switch {
	case mode&others != 0:
		return "everyone (" + mode.String() + ")"
	case mode&group != 0:
		return "its group (" + mode.String() + ")"
	}
	return ""
}
