package packager

import (
	"fmt"
	"io/fs"
	"time"
)

// stamp is what a file system tells of a file's state. Equal stamps mean equal
// content, as they do for git's index.
type stamp struct {
	size, modified int64
	// device, inode and the time at which content or inode last changed, in
	// nanoseconds. No program can set that time. All are 0 on systems that are
	// not asked for them.
	device, inode uint64
	changed       int64
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), modified: info.ModTime().UnixNano()}
	s.device, s.inode, s.changed = inodeOf(info)
	return s
}

// clockStep is more than the coarsest step of the clocks of file systems.
const clockStep = 2 * time.Second

// text is how a stamp that was taken at a time is remembered. It is empty for
// one that does not prove content later: without the time of the last change,
// or when that was so shortly ago that a further change may carry the same time.
func (s stamp) text(at time.Time) string {
	if s.changed == 0 || at.UnixNano()-max(s.changed, s.modified) < int64(clockStep) {
		return ""
	}
	return fmt.Sprintf("%d %d %d %d %d", s.device, s.inode, s.size, s.modified, s.changed)
}
