package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// coloursShown switches a console to escape sequences, which Windows 10 and later
// understand, and reports whether it does.
func coloursShown(stream *os.File) bool {
	var mode uint32
	console := windows.Handle(stream.Fd())
	if err := windows.GetConsoleMode(console, &mode); err != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
