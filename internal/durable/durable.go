// Package durable lands files and folders so that whoever looks, at any moment
// and after any crash, finds the old one or the new one, complete: staged beside
// its place, flushed to the disk, renamed, and the rename flushed too.
//
// It does not lock: of two who write the same place at once the last one wins.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// WriteFile writes or replaces a file. Its mode is the given one, whatever the
// umask and the mode of the file before. The folder must be there. A link stays,
// and what it stands for is written, there or not: for files that users name.
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
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
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

// PlaceDir moves the folder dir to target, on the same file system. A folder
// that is there changes places with it, in one step where the system can:
// afterwards dir is the old one, for the caller to remove, or is gone. The content
// of dir is to be flushed before, with [SyncTree].
func PlaceDir(dir, target string) error {
	if err := place(dir, target); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(target))
}

func place(dir, target string) error {
	if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(dir, target)
	}
	err := exchange(dir, target)
	if errors.Is(err, errors.ErrUnsupported) {
		err = swap(dir, target)
	}
	if errors.Is(err, syscall.EXDEV) {
		return replace(dir, target)
	}
	return err
}

// unfinished begins the names of what did not reach its place yet.
const unfinished = ".new-"

// Unfinished reports whether a folder of that name is what [PlaceDir] leaves
// beside its target when it is killed. It is of no use to anybody.
func Unfinished(name string) bool { return strings.HasPrefix(name, unfinished) }

// replace is for a target that cannot be moved: in a container, a folder that
// came with the image. It is removed where it is, so that a crash can leave a
// part of it or nothing. dir is gone afterwards. If it is dir that cannot be
// moved there, nothing is touched.
func replace(dir, target string) error {
	beside := filepath.Join(filepath.Dir(target), unfinished+filepath.Base(target))
	if err := errors.Join(os.RemoveAll(beside), os.Rename(dir, beside)); err != nil {
		return err
	}
	if err := os.RemoveAll(target); err != nil {
		return errors.Join(err, os.Rename(beside, dir))
	}
	return os.Rename(beside, target)
}

// TakeDir moves the folder dir out of sight, to aside, which must not be there,
// for the caller to remove. One that cannot be moved, see [PlaceDir], is removed.
func TakeDir(dir, aside string) error {
	err := os.Rename(dir, aside)
	if errors.Is(err, syscall.EXDEV) {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(dir))
}

// swap exchanges in three steps. Between the first two there is nothing at
// target, and a crash then leaves the old one as dir + ".old".
func swap(dir, target string) error {
	aside := dir + ".old"
	if err := os.Rename(target, aside); err != nil {
		return err
	}
	if err := os.Rename(dir, target); err != nil {
		return errors.Join(err, os.Rename(aside, target))
	}
	return os.Rename(aside, dir)
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
