//go:build !windows

package cli

import "os"

// coloursShown reports whether a terminal understands escape sequences.
func coloursShown(*os.File) bool { return true }
