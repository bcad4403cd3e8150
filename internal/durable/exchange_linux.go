package durable

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// exchange lets two folders change places atomically, so that there is no moment
// at which the plugin is not there.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}
