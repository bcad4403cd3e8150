//go:build !windows

package diskfull_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/diskfull"
)

func TestIs(t *testing.T) {
	t.Parallel()
	for _, errno := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if err := fmt.Errorf("writing: %w", &os.PathError{Op: "write", Path: "x", Err: errno}); !diskfull.Is(err) {
			t.Errorf("%v is not one", err)
		}
	}
	for _, err := range []error{nil, errors.New("no space left on device"), syscall.EACCES, os.ErrNotExist} {
		if diskfull.Is(err) {
			t.Errorf("%v is one", err)
		}
	}
}
