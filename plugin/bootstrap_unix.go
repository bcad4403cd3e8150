//go:build unix

package plugin

import (
	"errors"
	"os"
	"syscall"
)

// modesMatter: permissions are what other users are let in by.
const modesMatter = true

// syncDir makes a folder's entries last. Some file systems cannot be asked to.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
