package durable

import (
	"errors"

	"golang.org/x/sys/windows"
)

// inUse knows the errors of files that are open, run, or are going to be removed
// when the last who has them open closes them. The last is of a folder with such a
// file in it.
func inUse(err error) bool {
	for _, one := range []error{
		windows.ERROR_SHARING_VIOLATION, windows.ERROR_LOCK_VIOLATION, windows.ERROR_ACCESS_DENIED, windows.ERROR_USER_MAPPED_FILE,
		windows.ERROR_DELETE_PENDING, windows.ERROR_DIR_NOT_EMPTY,
	} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

func otherDevice(err error) bool { return errors.Is(err, windows.ERROR_NOT_SAME_DEVICE) }
