package recording

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Record runs a command on a terminal of its own and returns what it showed. An
// error of the command comes with what was shown until then.
func Record(ctx context.Context, cmd *exec.Cmd, cast Cast) (Cast, error) {
	terminal, other, err := openTerminal(cast.Width, cast.Height)
	if err != nil {
		return cast, fmt.Errorf("opening a terminal: %w", err)
	}
	defer func() { _ = terminal.Close() }()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = other, other, other
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	start := time.Now()
	err = cmd.Start()
	// Only the command keeps the other side, so that reading ends with it.
	if closeErr := other.Close(); err != nil || closeErr != nil {
		return cast, errors.Join(err, closeErr)
	}
	buffer := make([]byte, 64<<10)
	for ctx.Err() == nil {
		n, err := terminal.Read(buffer)
		if n > 0 {
			cast.Events = append(cast.Events, Event{time.Since(start), string(buffer[:n])})
		}
		if err != nil {
			break // EIO, on Linux, when the last process has closed its side
		}
	}
	return cast, errors.Join(ctx.Err(), cmd.Wait())
}

// openTerminal opens both sides of a pseudo terminal; see pty(7).
func openTerminal(width, height int) (terminal, other *os.File, err error) {
	terminal, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(terminal.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)}) // #nosec G115 -- a terminal is small
	}
	if err == nil {
		other, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, terminal.Close())
	}
	return terminal, other, nil
}
