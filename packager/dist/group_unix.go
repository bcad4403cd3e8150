//go:build unix

package dist

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a command and the processes that it starts into a group of their
// own, all of which ends when its context does.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
