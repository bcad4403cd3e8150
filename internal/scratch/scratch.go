// Package scratch makes folders for temporary files that do not pile up: what a
// killed process left is removed by the next one.
package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/radome-io/fleeting-plugin-openstack/internal/access"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

const (
	// prefix begins the names of the folders.
	prefix = "fleeting-plugin-"
	// lockFile is the file in a folder that its process holds locked.
	lockFile = ".lock"
)

// Folder is a temporary folder of this process.
type Folder struct {
	// Dir is the folder, readable by this user only. It holds a file ".lock".
	Dir  string
	lock *flock.Flock
}

// New makes a folder in the system's folder for temporary files, and removes those
// of processes that were killed.
func New() (*Folder, error) {
	sweep()
	const attempts = 10
	for range attempts {
		dir, err := os.MkdirTemp("", prefix)
		if err != nil {
			return nil, err
		}
		f := &Folder{Dir: dir, lock: flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))}
		locked, err := f.locked()
		if locked {
			return f, nil
		}
		// Another process came between, and takes the folder for one that is left.
		if err := errors.Join(err, f.lock.Unlock(), os.RemoveAll(dir)); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("other processes remove each new folder in " + os.TempDir())
}

// locked locks the folder, and reports whether it is still there then.
func (f *Folder) locked() (bool, error) {
	locked, err := f.lock.TryLock()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !locked {
		return false, err
	}
	mine, err := f.lock.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(f.lock.Path())
	return err == nil && os.SameFile(mine, there), nil
}

// Close removes the folder.
func (f *Folder) Close() error { return remove(f.Dir, f.lock) }

// remove removes a folder whose lock is held. Windows removes no file that is open,
// so there the lock file goes last.
func remove(dir string, lock *flock.Flock) error {
	_ = os.RemoveAll(dir)
	return errors.Join(lock.Unlock(), durable.RemoveAll(dir))
}

// sweep removes what killed processes left. What cannot be removed stays, and fails
// nothing.
func sweep() {
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*", lockFile))
	for _, path := range locks {
		// Other users may put anything under such a name, such as a lock file that is
		// a link.
		dir := filepath.Dir(path)
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || access.Guarded(dir) != nil {
			continue
		}
		// A file that is gone by now must not be made again in a folder that is being
		// removed.
		lock := flock.New(path, flock.SetFlag(os.O_RDWR))
		if locked, err := lock.TryLock(); err != nil || !locked {
			continue
		}
		_ = remove(dir, lock)
	}
}
