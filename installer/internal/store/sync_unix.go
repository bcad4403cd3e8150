//go:build !windows

package store

import (
	"errors"
	"os"
	"syscall"
)

// syncFolder makes the names in a folder durable. Some file systems cannot and say so.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
