package lifecycle_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	cookieName  = "FLEETING_INSTANCE_GROUP_PLUGIN"
	cookieValue = "4c6410b1-cb78-4962-8c76-ab936d0ea908"

	// asRunner has this test stand in for a runner that starts this plugin.
	asRunner = "LIFECYCLE_AS_RUNNER"
)

// served is the environment in which the runner starts a plugin.
func served() []string {
	return []string{
		cookieName + "=" + cookieValue, "TMP=" + os.TempDir(), "TMPDIR=" + os.TempDir(), "SYSTEMROOT=" + os.Getenv("SYSTEMROOT"), "LOCALAPPDATA=" + os.Getenv("LOCALAPPDATA"),
	}
}

// start starts the installed plugin as the runner does, until stop is called.
func (l *life) start(t *testing.T) (stop func()) {
	t.Helper()
	return startFile(t, strings.TrimSpace(l.tool(t, "lookpath", alias)))
}

func startFile(t *testing.T, path string) (stop func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Env = served()
	out := speaking(t, cmd)
	return func() {
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // killed
	}
}

// speaking starts a plugin, or what starts one, and returns what it writes once it
// serves.
func speaking(t *testing.T, cmd *exec.Cmd) io.Reader {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(out)
	line, err := reader.ReadString('\n')
	if err != nil || !strings.Contains(line, "|grpc") {
		t.Fatalf("%s said %q, %v", cmd, line, err)
	}
	return reader
}

// TestAsRunner is not a test: it stands in for a runner, which may be killed.
func TestAsRunner(t *testing.T) {
	path := os.Getenv(asRunner)
	if path == "" {
		return
	}
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Env, cmd.Stdout = served(), os.Stdout
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

// orphan kills a runner. Its plugin ends by itself: the runner's next start has one
// of its own.
func (l *life) orphan(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runner := exec.CommandContext(t.Context(), self, "-test.run=^TestAsRunner$", "-test.timeout=0")
	runner.Env = append(os.Environ(), asRunner+"="+strings.TrimSpace(l.tool(t, "lookpath", alias)))
	out := speaking(t, runner)
	if err := runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The plugin holds the other end of the pipe, too, until it ends.
	_, err = io.Copy(io.Discard, out)
	_ = runner.Wait() // killed
	if err != nil {
		t.Error(err)
	}
}

// bootstrap has a plugin copy itself to where another copy of the same version,
// with other content, runs. It starts then, and what made way goes later.
func (l *life) bootstrap(t *testing.T) {
	const name = "registry.test/team/copied"
	target, program := t.TempDir(), named("plugin", runtime.GOOS+"/")
	placed := filepath.Join(target, "registry.test", "team", "copied", versions[0], program)
	first := filepath.Join(l.things, versions[0], runtime.GOOS, runtime.GOARCH, program)
	content, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(t.TempDir(), program)
	if err := os.WriteFile(second, append(slices.Clone(content), "again"...), 0o755); err != nil { // #nosec G306 -- executable
		t.Fatal(err)
	}
	copied := func(from string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), from, "bootstrap", name)
		cmd.Env = []string{"FLEETING_PLUGIN_PATH=" + target, "SYSTEMROOT=" + os.Getenv("SYSTEMROOT")}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		want, err := os.ReadFile(from)
		got, other := os.ReadFile(placed)
		if err := errors.Join(err, other); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s is not what was copied: %v", placed, err)
		}
	}
	copied(first)
	old := startFile(t, placed)
	copied(second)
	startFile(t, placed)()
	copied(first)
	old()
	// A later copy removes what is as old as this.
	for _, left := range names(t, target) {
		then := time.Now().Add(-2 * time.Hour)
		if err := os.Chtimes(filepath.Join(target, left), then, then); err != nil {
			t.Fatal(err)
		}
	}
	copied(second)
	if found := names(t, target); len(found) != 1 {
		t.Errorf("left behind: %v", found)
	}
}
