package durable

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// exchange lets two folders change places atomically, so that there is no moment
// at which the plugin is not there. APFS can, other file systems cannot.
func exchange(a, b string) error {
	err := unix.RenamexNp(a, b, unix.RENAME_SWAP)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}
