// Package access tells who else may read or write a file or a folder: by its mode
// on Unix, by its access list on Windows.
//
// It changes nothing, and it does not ask who may write the folders above.
package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrOthers reports a folder that others may write and that is to be trusted.
var ErrOthers = errors.New("other users may write it")

// Access says who else than the user of this process and the administrators may
// do something, for messages; "" means no one.
type Access struct{ Write, Read string }

// Of returns the access to a file or folder. A link is followed.
func Of(path string) (Access, error) { return of(path) }

// Guarded returns an error if others may write a folder, or if that cannot be
// told. A folder that is not there is guarded: there is nothing to read in it.
// A link, or a junction on Windows, leads to a folder of which nothing is known.
func Guarded(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: %w: it is not a folder but a link or a file", dir, ErrOthers)
	}
	found, err := Of(dir)
	if err != nil {
		return err
	}
	if found.Write != "" {
		return fmt.Errorf("%s: %w: %s", dir, ErrOthers, found.Write)
	}
	return nil
}
