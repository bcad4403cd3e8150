//go:build !unix

package packager

import "os/exec"

// ownGroup does nothing: such systems have no groups of processes.
func ownGroup(*exec.Cmd) {}
