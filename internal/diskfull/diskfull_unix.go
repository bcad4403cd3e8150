//go:build !windows

package diskfull

import (
	"errors"
	"syscall"
)

func is(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
