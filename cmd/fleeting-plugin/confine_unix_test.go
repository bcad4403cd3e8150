//go:build !windows

package main

import (
	"os"
	"os/signal"
	"runtime"
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
	var rlimit syscall.Rlimit
	bound(&rlimit.Cur, limit)
	bound(&rlimit.Max, limit)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &rlimit)
}

// bound sets a limit, which is signed on some systems.
func bound[T int64 | uint64](field *T, to uint64) { *field = T(to) }

// peakMemory is the most memory that a process had that has ended, or one of its
// children, in MiB.
func peakMemory(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss) >> 20
	}
	return int64(usage.Maxrss) >> 10
}
