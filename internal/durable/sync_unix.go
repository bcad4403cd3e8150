//go:build !windows

package durable

import (
	"errors"
	"os"
	"syscall"
)

// sync flushes a file or a folder. Some file systems cannot flush folders and
// say so.
func sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
