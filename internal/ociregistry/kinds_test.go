package ociregistry

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
)

// TestLocalFailures: a file that cannot be written is no registry that is down,
// although the system's errors have the methods of the network's.
func TestLocalFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"disk full":          {&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, nil},
		"no permission":      {&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, nil},
		"rename":             {&os.LinkError{Op: "rename", Old: "x", New: "y", Err: syscall.EXDEV}, nil},
		"connection refused": {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, ErrUnavailable},
	} {
		if got := kindOf(fmt.Errorf("storing: %w", c.err)); !errors.Is(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
}
