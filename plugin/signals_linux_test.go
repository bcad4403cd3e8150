package plugin_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"gitlab.com/gitlab-org/fleeting/fleeting"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"
)

// stops are what the plugin gets when its runner is told to reload, to quit, or
// to end, and everything around it with it.
func stops() []syscall.Signal {
	return []syscall.Signal{syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGINT}
}

// TestExecutableEndsWithItsRunner: a runner that quits when its jobs have ended
// needs the plugin until then. A plugin without a runner, as one leaves that is
// killed, ends by itself.
func TestExecutableEndsWithItsRunner(t *testing.T) {
	t.Parallel()
	file := buildExecutable(t)
	outlastsSignals(t, file)
	endsWithoutRunner(t, file)
}

func outlastsSignals(t *testing.T, file string) {
	t.Helper()
	w, _ := served(t)
	config, err := json.Marshal(w.config(nil))
	if err != nil {
		t.Fatal(err)
	}
	logger := hclog.New(&hclog.LoggerOptions{Output: t.Output(), Level: hclog.Warn})
	runner, err := fleeting.RunPlugin(file, config, fleeting.WithPluginLogger(logger))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runner.Kill)
	group := runner.InstanceGroup()
	if _, err := group.Init(t.Context(), logger, provider.Settings{}); err != nil {
		t.Fatal(err)
	}
	pid := processOf(t, file)
	for _, stop := range stops() {
		if err := syscall.Kill(pid, stop); err != nil {
			t.Fatal(err)
		}
		if err := group.Update(t.Context(), func(string, provider.State) {}); err != nil {
			t.Fatalf("after %v: %v", stop, err)
		}
	}
	runner.Kill()
	if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid))); err == nil {
		t.Error("the runner has killed the plugin, and it is still there")
	}
}

func endsWithoutRunner(t *testing.T, file string) {
	t.Helper()
	parent := exec.CommandContext(t.Context(), "sh", "-c", `"$0" & wait`, file)
	// Cookie and value: internal/plugin of fleeting.
	parent.Env = append(os.Environ(), "FLEETING_INSTANCE_GROUP_PLUGIN=4c6410b1-cb78-4962-8c76-ab936d0ea908")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil { // it serves
		t.Fatal(err)
	}
	pid := processOf(t, file)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := parent.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	if _, err := io.Copy(io.Discard, lines); err != nil { // until it has ended
		t.Error(err)
	}
	if !late.Stop() {
		t.Error("the plugin did not end")
	}
}

// processOf finds the one process that runs a file, other than a shell's copy of
// itself that is about to.
func processOf(t *testing.T, file string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == file {
			pid, err := strconv.Atoi(strings.Split(link, "/")[2])
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("nothing runs %s", file)
	return 0
}
