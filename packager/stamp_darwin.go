package packager

import (
	"io/fs"
	"syscall"
)

func inodeOf(info fs.FileInfo) (device, inode uint64, changed int64) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, 0
	}
	return uint64(s.Dev), s.Ino, s.Ctimespec.Nano() //nolint:gosec // a number to compare, whatever its sign
}
