package diskfull

import (
	"errors"
	"syscall"
)

// https://learn.microsoft.com/en-us/windows/win32/debug/system-error-codes--0-499-
const (
	errorHandleDiskFull = syscall.Errno(39)
	errorDiskFull       = syscall.Errno(112)
)

func is(err error) bool {
	return errors.Is(err, errorDiskFull) || errors.Is(err, errorHandleDiskFull)
}
