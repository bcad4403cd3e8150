package packager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
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
		err := durable.WhileInUse(func() error { // by the one before, who removes it
			_, err := o.lock.TryLockContext(ctx, lockInterval)
			return err
		})
		if err != nil {
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

// close lets others write the output. Windows removes no file that is open, and
// there it does not matter that another process may lock it in between: that one
// has it open.
func (o *output) close() {
	removed := os.Remove(o.lock.Path())
	_ = o.lock.Unlock()
	if removed != nil {
		_ = os.Remove(o.lock.Path())
	}
}

// beside is the name of a file that goes with the output.
func (o *output) beside(suffix string) string {
	dir, name := filepath.Split(o.target)
	return filepath.Join(dir, "."+name+".fleeting-plugin"+suffix)
}

// stageSuffix is that of what is being written.
const stageSuffix = "-new"

// clear removes what a killed process left, and finishes what it was doing.
func (o *output) clear() error {
	stage := o.beside(stageSuffix)
	if err := durable.Recover(stage, o.target); err != nil {
		return err
	}
	return errors.Join(durable.RemoveAll(stage), durable.RemoveAll(stage+".old"))
}
