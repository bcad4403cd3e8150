package packager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// output is a folder that this process alone is writing. What is half written
// lies beside it, under a name that begins with its own.
type output struct {
	target string
	lock   *flock.Flock
}

// lockInterval is how often an output that another process writes is tried.
const lockInterval = 50 * time.Millisecond

// openOutput waits for other processes that write target, and then clears what
// one left behind that was killed: nobody else is at work there.
func openOutput(ctx context.Context, target string) (*output, error) {
	o := &output{target: filepath.Clean(target)}
	path := o.beside(".lock")
	for {
		o.lock = flock.New(path)
		if _, err := o.lock.TryLockContext(ctx, lockInterval); err != nil {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		// The one before may have removed the file that was locked now.
		if o.holds(path) {
			break
		}
		_ = o.lock.Unlock()
	}
	if err := o.clear(); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func (o *output) holds(path string) bool {
	there, err := os.Stat(path)
	if err != nil {
		return false
	}
	locked, err := o.lock.Stat()
	return err == nil && os.SameFile(there, locked)
}

// close lets others write the output.
func (o *output) close() {
	_ = os.Remove(o.lock.Path())
	_ = o.lock.Unlock()
}

// beside is the name of a file that goes with the output.
func (o *output) beside(suffix string) string {
	dir, name := filepath.Split(o.target)
	return filepath.Join(dir, "."+name+".fleeting-plugin"+suffix)
}

// stageSuffix is that of what is being written.
const stageSuffix = "-new"

// clear removes what a killed process left. Where [durable.PlaceDir] cannot
// exchange folders, a crash may have left the old one aside: it comes back.
func (o *output) clear() error {
	stage := o.beside(stageSuffix)
	aside := stage + ".old"
	if _, err := os.Lstat(o.target); errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(aside, o.target); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return errors.Join(os.RemoveAll(stage), os.RemoveAll(aside))
}
