package durable

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/radome-io/fleeting-plugin-openstack/internal/access"
)

// Scratch is a temporary folder of this process.
type Scratch struct {
	// Dir is the folder, readable by this user only.
	Dir  string
	lock *flock.Flock
}

// scratchLock is the file in a scratch folder that its process holds locked.
const scratchLock = ".lock"

// scratchPrefix begins the names of scratch folders.
const scratchPrefix = "fleeting-plugin-"

// NewScratch makes a folder in the system's folder for temporary files. It removes
// those of processes that were killed, so that they do not pile up.
func NewScratch() (*Scratch, error) {
	sweepScratch()
	dir, err := os.MkdirTemp("", scratchPrefix)
	if err != nil {
		return nil, err
	}
	s := &Scratch{Dir: dir, lock: flock.New(filepath.Join(dir, scratchLock), flock.SetPermissions(0o600))}
	locked, err := s.lock.TryLock()
	if err == nil && !locked {
		err = errors.New("another process removes the folder") // which came between, and took it for one that is left
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// Close removes the folder.
func (s *Scratch) Close() error {
	// Windows removes no file that is open.
	return errors.Join(s.lock.Unlock(), RemoveAll(s.Dir))
}

// sweepScratch removes what killed processes left. What cannot be removed stays, and
// fails nothing.
func sweepScratch() {
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*", scratchLock))
	for _, path := range locks {
		// Other users may put anything under such a name, such as a lock file that is
		// a link.
		dir := filepath.Dir(path)
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || access.Guarded(dir) != nil {
			continue
		}
		lock := flock.New(path)
		if locked, err := lock.TryLock(); err != nil || !locked {
			continue
		}
		_ = lock.Unlock()
		_ = os.RemoveAll(dir)
	}
}
