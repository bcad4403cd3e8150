//go:build !windows

package durable

import (
	"errors"
	"syscall"
)

func inUse(error) bool { return false }

func otherDevice(err error) bool { return errors.Is(err, syscall.EXDEV) }
