package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// unfinished begins the names of what did not reach its place yet.
	unfinished = ".new-"
	// old ends the name of the folder that makes way for another.
	old = ".old"
	// part ends the name of a folder that is taken file by file, until it is
	// complete.
	part = ".part"
)

// Unfinished reports whether a folder of that name is what [PlaceDir] leaves
// beside its target when it is killed. It can be removed.
func Unfinished(name string) bool { return strings.HasPrefix(name, unfinished) }

// Interrupted returns the folder that was to be placed or taken, if a name is one
// that [PlaceDir] or [TakeDir] leaves beside it when it is killed; see [Recover].
func Interrupted(name string) (dir string, ok bool) {
	dir = strings.TrimSuffix(strings.TrimSuffix(name, part), old)
	return dir, dir != name
}

// PlaceDir moves the folder dir to target, on the same file system. A folder
// that is there changes places with it, in one step where the system can:
// afterwards dir is the old one, for the caller to remove, or is gone. The content
// of dir is to be flushed before, with [SyncTree]. After a crash call [Recover].
func PlaceDir(dir, target string) error {
	if err := place(dir, target); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(target))
}

func place(dir, target string) error {
	if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
		return Rename(dir, target)
	}
	err := exchange(dir, target)
	if errors.Is(err, errors.ErrUnsupported) {
		err = swap(dir, target)
	}
	if otherDevice(err) {
		return replace(dir, target)
	}
	return err
}

// replace is for a target that cannot be moved: in a container, a folder that
// came with the image. It is removed where it is, so that a crash can leave a
// part of it or nothing. dir is gone afterwards. If it is dir that cannot be
// moved there, nothing is touched.
func replace(dir, target string) error {
	beside := filepath.Join(filepath.Dir(target), unfinished+filepath.Base(target))
	if err := errors.Join(RemoveAll(beside), Rename(dir, beside)); err != nil {
		return err
	}
	if err := RemoveAll(target); err != nil {
		return errors.Join(err, Rename(beside, dir))
	}
	return Rename(beside, target)
}

// swap exchanges in three steps. Between the first two there is nothing at
// target, and a crash then leaves the old one as dir + ".old".
func swap(dir, target string) error {
	aside := dir + old
	if err := take(target, aside); err != nil {
		return err
	}
	if err := Rename(dir, target); err != nil {
		return errors.Join(err, Rename(aside, target))
	}
	// As dir + ".old" it would come back if target were gone one day.
	if err := take(aside, dir); !InUse(err) {
		return err
	}
	return nil
}

// Recover finishes what a crash interrupted: a [PlaceDir] of dir to target or a
// [TakeDir] of target to dir. What was taken from target comes back unless the
// new folder is there.
func Recover(dir, target string) error {
	for _, taken := range []string{dir + old + part, dir + part} {
		if err := putBack(taken, target); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Lstat(dir + old); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(MkdirAll(filepath.Dir(target), 0o755), Rename(dir+old, target))
}

// TakeDir moves the folder dir out of sight, to aside, which must not be there,
// for the caller to remove. One that cannot be moved, see [PlaceDir], is removed.
// Where a file in it is open, and the folder cannot be moved for that, its files
// are moved: either all, or none and the error is [InUse]. After a crash call
// [Recover].
func TakeDir(dir, aside string) error {
	err := take(dir, aside)
	if otherDevice(err) {
		err = RemoveAll(dir)
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(dir))
}

// take moves a folder, or all of its files.
func take(dir, aside string) error {
	err := waiting(impatience, func() error { return os.Rename(dir, aside) })
	if InUse(err) {
		return takeFiles(dir, aside)
	}
	return err
}

// takeFiles empties dir into aside and removes it. An executable that runs, and a
// file that was opened so that it may be deleted, can be moved though the folders
// above it cannot.
func takeFiles(dir, aside string) error {
	taken := aside + part
	if err := moveFiles(dir, taken); err != nil {
		return errors.Join(err, putBack(taken, dir))
	}
	if err := RemoveAll(dir); err != nil {
		return errors.Join(err, putBack(taken, dir))
	}
	return Rename(taken, aside)
}

// putBack moves what takeFiles took; there may be nothing.
func putBack(taken, dir string) error {
	if _, err := os.Lstat(taken); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := moveFiles(taken, dir); err != nil {
		return err
	}
	return RemoveAll(taken)
}

// moveFiles moves the files in a folder to another, with the folders that they
// are in. It stops at the first that cannot be moved.
func moveFiles(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return MkdirAll(filepath.Join(to, inside), 0o755)
		}
		return Rename(path, filepath.Join(to, inside))
	})
}
