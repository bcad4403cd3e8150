//go:build !windows

package main

import (
	"os/signal"
	"strconv"
	"syscall"
)

// confine limits how large files may become that this process writes: beyond
// that writes fail, as on a disk that is full.
func confine(size string) error {
	if size == "" {
		return nil
	}
	limit, err := strconv.ParseUint(size, 10, 31)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit})
}
