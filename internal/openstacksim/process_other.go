//go:build !unix

package openstacksim

import "os/exec"

// killGroup does nothing here: only the shell itself is ended.
func killGroup(*exec.Cmd) {}
