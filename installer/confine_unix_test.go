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
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: size})
}
