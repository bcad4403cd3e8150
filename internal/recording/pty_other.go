//go:build !linux

package recording

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
)

// Record runs on Linux only.
func Record(context.Context, *exec.Cmd, Cast) (Cast, error) {
	return Cast{}, fmt.Errorf("recording a terminal on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
