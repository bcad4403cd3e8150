//go:build unix

package guest

import (
	"os/exec"
	"syscall"
)

// killGroup makes the end of a command's context end its children too.
func killGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
