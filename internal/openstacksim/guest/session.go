package guest

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/crypto/ssh"
)

func (sh *Shells) folder(server string) string { return filepath.Join(sh.root, server) }

// session answers the requests of one session: one command, or one shell that
// reads its commands from the input.
func (sh *Shells) session(ctx context.Context, who Guest, channel ssh.Channel, requests <-chan *ssh.Request) {
	defer func() { _ = channel.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	started := false
	done := make(chan struct{})
	for {
		select {
		case <-done:
			return
		case request, more := <-requests:
			if !more {
				// The client hung up; what it started ends too.
				cancel()
				if started {
					<-done
				}
				return
			}
			args, isCommand := commandOf(request)
			if !isCommand || started {
				reply(request, !started && accepts(request.Type))
				continue
			}
			started = true
			reply(request, true)
			sh.wait.Go(func() {
				defer close(done)
				sh.run(ctx, who, channel, args)
			})
		}
	}
}

// accepts names the requests that need no doing.
func accepts(kind string) bool { return kind == "env" || kind == "pty-req" || kind == "window-change" }

func reply(request *ssh.Request, yes bool) {
	if request.WantReply {
		_ = request.Reply(yes, nil)
	}
}

func commandOf(request *ssh.Request) ([]string, bool) {
	switch request.Type {
	case "exec":
		var payload struct{ Command string }
		if err := ssh.Unmarshal(request.Payload, &payload); err != nil {
			return nil, false
		}
		return []string{"-c", payload.Command}, true
	case "shell":
		return nil, true
	default:
		return nil, false
	}
}

// run runs sh on the server and reports its exit status.
func (sh *Shells) run(ctx context.Context, who Guest, channel ssh.Channel, args []string) {
	folder := sh.folder(who.ID)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		_, _ = io.WriteString(channel.Stderr(), err.Error()+"\n")
		sendStatus(channel, 255)
		return
	}
	command := exec.CommandContext(ctx, "sh", args...) //nolint:gosec // running what it is told is what the server is for
	command.Dir = folder
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "USER=" + who.user, "HOSTNAME=" + who.Name,
		"TMPDIR=" + folder, "LANG=C.UTF-8",
	}
	command.Stdout, command.Stderr = channel, channel.Stderr()
	command.WaitDelay = time.Second
	killGroup(command)
	input, err := command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		_, _ = io.WriteString(channel.Stderr(), err.Error()+"\n")
		sendStatus(channel, 255)
		return
	}
	go func() {
		_, _ = io.Copy(input, channel)
		_ = input.Close()
	}()
	sendStatus(channel, exitStatus(command.Wait()))
}

func exitStatus(err error) uint32 {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return uint32(exit.ExitCode())
	default:
		return 255
	}
}

func sendStatus(channel ssh.Channel, status uint32) {
	_ = channel.CloseWrite()
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
}
