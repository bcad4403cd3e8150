//go:build !windows

package installer_test

import (
	"os/signal"
	"strconv"
	"syscall"
)

// confine gives this process the umask and the limit on the size of files that
// its environment names.
func confine(env func(string) string) error {
	if text := env("INSTALLER_TEST_UMASK"); text != "" {
		mask, err := strconv.ParseUint(text, 8, 9)
		if err != nil {
			return err
		}
		syscall.Umask(int(mask))
	}
	text := env("INSTALLER_TEST_FILE_SIZE")
	if text == "" {
		return nil
	}
	size, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return err
	}
	// Otherwise it would be killed, where a disk that is full makes writes fail.
	signal.Ignore(syscall.SIGXFSZ)
	var rlimit syscall.Rlimit
	bound(&rlimit.Cur, size)
	bound(&rlimit.Max, size)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &rlimit)
}

// bound sets a limit, which is signed on some systems.
func bound[T int64 | uint64](field *T, to uint64) { *field = T(to) }
