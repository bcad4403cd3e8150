// Package durable lands files and folders so that a reader, at any moment and
// after any crash, finds the old one or the new one, complete: staged beside its
// place, flushed to the disk, renamed, and the rename flushed too.
//
// On Windows a file that another process has open cannot be replaced or removed,
// and one that runs cannot be removed. There renames are tried again for some
// seconds, and folders change places in two steps: [Recover] finishes after a
// crash between them.
//
// It does not lock: of two processes that write the same place at once the last
// one wins.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// WriteFile writes or replaces a file. Its mode is the given one, whatever the
// umask and the mode of the file before. The folder must be there. A link stays,
// and the file that it points to is written, there or not: for files that users name.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	return Write(path, mode, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Write is [WriteFile] for content that is produced on the way. After an error,
// of write or another, the file is as it was before and nothing lies beside it.
func Write(path string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	if path, err = linked(path); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, unfinished+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err = write(f); err == nil {
		err = errors.Join(f.Chmod(mode), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// Rename is [os.Rename] that waits up to five seconds while another process has
// one of the files open, where that keeps it from being renamed.
func Rename(from, to string) error {
	return waiting(patience, func() error { return os.Rename(from, to) })
}

// RemoveAll is [os.RemoveAll] that waits like [Rename].
func RemoveAll(path string) error {
	return waiting(patience, func() error { return os.RemoveAll(path) })
}

// WhileInUse repeats what reads while it fails because a file is being replaced or
// moved at this moment, for up to five seconds.
func WhileInUse(read func() error) error { return waiting(patience, read) }

// InUse reports whether a rename or removal failed because another process has
// the file open or runs it. Windows has the same error for files that this
// process has no right to change. Other systems never fail so.
func InUse(err error) bool { return err != nil && inUse(err) }

const (
	patience    = 5 * time.Second
	impatience  = 200 * time.Millisecond
	longestWait = 50 * time.Millisecond
)

// waiting repeats what fails because of another process, for about as long as
// most says.
func waiting(most time.Duration, do func() error) error {
	wait := time.Millisecond
	for waited := time.Duration(0); ; waited += wait {
		err := do()
		if !InUse(err) || waited > most {
			return err
		}
		// Not in step with a reader that comes back again and again.
		wait = min(2*wait, longestWait)
		time.Sleep(wait/2 + rand.N(wait/2)) //nolint:forbidigo,gosec // nothing reports when another process closes a file
	}
}

// linked follows links to the file that they stand for: a rename would put a file
// in the place of the link.
func linked(name string) (string, error) {
	const most = 40 // as Linux
	for range most {
		to, err := os.Readlink(name)
		if err != nil {
			return name, nil //nolint:nilerr // not a link
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(name), to)
		}
		name = to
	}
	return "", fmt.Errorf("%s: more than %d links", name, most)
}

// ErrLink is a symbolic link in the place of a file.
var ErrLink = errors.New("it is a symbolic link")

// NoLink refuses a link at path, for files in a folder that others may have
// prepared: it would lead out of the folder.
func NoLink(path string) error {
	if _, err := os.Readlink(path); err == nil {
		return &fs.PathError{Op: "write", Path: path, Err: ErrLink}
	}
	return nil
}

// MkdirAll creates a folder and those above it that are missing, with this mode,
// whatever the umask. Folders that are there are left as they are.
func MkdirAll(dir string, mode fs.FileMode) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a folder", dir)
		}
		return nil
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := MkdirAll(above, mode); err != nil {
			return err
		}
	}
	err := os.Mkdir(dir, mode)
	if errors.Is(err, fs.ErrExist) {
		// Another process was faster, or it is a link that leads nowhere.
		_, err := os.Stat(dir)
		return err
	}
	if err != nil {
		return err
	}
	return errors.Join(setMode(dir, mode), SyncDir(above))
}

// setMode undoes the umask. The setgid bit that a folder inherits stays: it is
// how volumes are shared with a group.
func setMode(dir string, mode fs.FileMode) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return os.Chmod(dir, mode|info.Mode()&fs.ModeSetgid)
}

// SyncTree flushes what is in a folder and beneath it: the names, and the
// content of the files.
func SyncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() && !entry.Type().IsRegular() {
			return err
		}
		return sync(path)
	})
}

// SyncDir flushes the names in a folder.
func SyncDir(dir string) error {
	err := sync(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil // one may write into a folder that one may not read
	}
	return err
}
