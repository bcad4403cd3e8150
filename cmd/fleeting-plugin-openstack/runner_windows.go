package main

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// runnerGone returns a function that reports whether the process that started this
// one has ended. Windows keeps naming that process as the parent, so this holds on
// to it. It cannot tell if it may not open the process, and is false then.
func runnerGone() func() bool {
	const access = windows.SYNCHRONIZE | windows.PROCESS_QUERY_LIMITED_INFORMATION
	runner, err := windows.OpenProcess(access, false, uint32(os.Getppid())) // #nosec G115 -- Windows' own number
	if err != nil {
		gone := errors.Is(err, windows.ERROR_INVALID_PARAMETER)
		return func() bool { return gone }
	}
	if startedAfterThis(runner) {
		// It has the ID of the runner, which ended already.
		_ = windows.CloseHandle(runner)
		return func() bool { return true }
	}
	return func() bool {
		event, err := windows.WaitForSingleObject(runner, 0)
		return err == nil && event == windows.WAIT_OBJECT_0
	}
}

func startedAfterThis(process windows.Handle) bool {
	other, ok := started(process)
	own, known := started(windows.CurrentProcess())
	return ok && known && other > own
}

// started is when a process started, in nanoseconds since 1970.
func started(process windows.Handle) (int64, bool) {
	var creation, exit, kernel, user windows.Filetime
	err := windows.GetProcessTimes(process, &creation, &exit, &kernel, &user)
	return creation.Nanoseconds(), err == nil
}
