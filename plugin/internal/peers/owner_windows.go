package peers

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// ended reports whether no process has the ID any more. Of another user's process
// it may not be allowed to ask; that one is there.
func ended(pid int) bool {
	process, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid)) // #nosec G115 -- Windows' own number
	if err != nil {
		return errors.Is(err, windows.ERROR_INVALID_PARAMETER)
	}
	defer func() { _ = windows.CloseHandle(process) }()
	event, err := windows.WaitForSingleObject(process, 0)
	return err == nil && event == windows.WAIT_OBJECT_0
}

// defaultIn is a folder of the account's own data: every user can write to the
// folder for temporary files of services, and to what is made in it.
func defaultIn(name string) string {
	if own := os.Getenv("LOCALAPPDATA"); own != "" {
		return filepath.Join(own, name)
	}
	return filepath.Join(os.TempDir(), name)
}

func owned(string) error { return nil }
