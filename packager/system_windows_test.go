package packager_test

import (
	"syscall"
	"testing"
	"time"
)

func processCPU(b *testing.B) time.Duration {
	b.Helper()
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		b.Fatal(err)
	}
	var created, ended, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(self, &created, &ended, &kernel, &user); err != nil {
		b.Fatal(err)
	}
	// Both are spans in steps of 100 ns, not moments.
	span := func(f syscall.Filetime) time.Duration {
		return time.Duration(int64(f.HighDateTime)<<32|int64(f.LowDateTime)) * 100
	}
	return span(kernel) + span(user)
}
