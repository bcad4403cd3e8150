//go:build !unix

package dist

import "os/exec"

// ownGroup does nothing: such systems have no groups of processes.
func ownGroup(*exec.Cmd) {}
