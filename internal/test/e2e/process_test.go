//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lastWords is how long a program has to end once it is told to.
const lastWords = 30 * time.Second

// lastLines is how much of a daemon's log is shown, in bytes.
const lastLines = 16 << 10

// command is a program in a process group of its own, so that what a terminal
// sends to the tests reaches it only through their cleanups. When ctx ends, it
// is told to end.
func command(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = lastWords
	return cmd
}

// serve starts a daemon that ends with the test. The end of its log is shown if the
// test failed.
func serve(t *testing.T, log, name string, args ...string) {
	t.Helper()
	serveIn(t, "", log, name, args...)
}

// serveIn is serve in a folder, for daemons that a test ends itself.
func serveIn(t *testing.T, dir, log, name string, args ...string) *os.Process {
	t.Helper()
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // it outlives the test's context, for the cleanups
	cmd := command(ctx, nil, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, file, file
	if err := cmd.Start(); err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it says that it was told to end
		if text, err := os.ReadFile(log); t.Failed() {
			t.Logf("%s: %v\n%s", name, err, text[max(0, len(text)-lastLines):])
		}
		_ = file.Close()
	})
	return cmd.Process
}

// await waits for a daemon or what it does.
func await(t *testing.T, what string, ready func() bool) {
	t.Helper()
	ctx, cancel := stepContext(t, oneStep)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not ready", what)
		case <-tick.C:
		}
	}
}

// sweepContainers ends what containers are left: those that runc keeps for the
// programs that work in dir.
func sweepContainers(dir string) error {
	roots, errs := filepath.Glob(filepath.Join(dir, "runc", "*", "*"))
	for _, root := range roots {
		names, err := quiet(nil, "runc", "--root", root, "list", "--quiet")
		errs = errors.Join(errs, err)
		for name := range strings.FieldsSeq(names) {
			if out, err := quiet(nil, "runc", "--root", root, "delete", "--force", name); err != nil {
				errs = errors.Join(errs, fmt.Errorf("runc delete %s: %w: %s", name, err, out))
			}
		}
	}
	return errs
}

// sweepProcesses ends every process whose command line names the folder, which
// is the tests' own: shims outlive the daemons that started them.
func sweepProcesses(dir string) error {
	lines, errs := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		line, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || pid == os.Getpid() || !bytes.Contains(line, []byte(dir+"/")) {
			continue // it may have ended
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}
