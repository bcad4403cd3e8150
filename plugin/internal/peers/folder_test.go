package peers_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/peers"
)

// joinVariable makes this test binary a process that joins the folder it names,
// prints its record, and waits to be killed.
const joinVariable = "PEERS_TEST_JOIN"

func TestMain(m *testing.M) {
	if path := os.Getenv(joinVariable); path != "" {
		os.Exit(joinAndWait(path))
	}
	os.Exit(m.Run())
}

func joinAndWait(path string) int {
	folder, err := peers.Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	self := peers.Self("group")
	if _, err := folder.Join(self, time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(self); err != nil {
		return 1
	}
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

// another starts a process that joins.
func another(t *testing.T, path string) (*exec.Cmd, peers.Process) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), joinVariable+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var p peers.Process
	if err := json.NewDecoder(out).Decode(&p); err != nil {
		t.Fatal(err)
	}
	return cmd, p
}

func open(t *testing.T, path string) peers.Folder {
	t.Helper()
	folder, err := peers.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestAProcessIsAliveUntilItIsKilled: the lock tells, also after kill -9.
func TestAProcessIsAliveUntilItIsKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks")
	folder := open(t, path)
	cmd, other := another(t, path)
	if got, state := folder.Look(other.Generation); state != peers.Alive || got != other {
		t.Errorf("while it runs: %v, %+v; want %+v", state, got, other)
	}
	if alive, err := folder.Of("group"); err != nil || !cmp.Equal(alive, []peers.Process{other}) {
		t.Errorf("of the group: %v, %v", alive, err)
	}
	if alive, err := folder.Of("another group"); err != nil || len(alive) != 0 {
		t.Errorf("of another group: %v, %v", alive, err)
	}
	if !other.SameRunner(peers.Process{Host: other.Host, Space: other.Space, Runner: os.Getpid()}) || other.RunnerGone() {
		t.Errorf("its runner: %+v", other)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got, state := folder.Look(other.Generation); state != peers.Dead || got.PID != other.PID {
		t.Errorf("after kill -9: %v, %+v", state, got)
	}
	if alive, err := folder.Of("group"); err != nil || len(alive) != 0 {
		t.Errorf("of the group: %v, %v", alive, err)
	}
}

// TestRunnerGone: it is told from the process's number, where that counts.
func TestRunnerGone(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	self := peers.Self("group")
	for name, row := range map[string]struct {
		runner int
		space  string
		want   bool
	}{
		"it lives":             {os.Getpid(), self.Space, false},
		"it has ended":         {cmd.Process.Pid, self.Space, true},
		"in another container": {cmd.Process.Pid, "pid:[1]", false},
		"it is not known":      {0, self.Space, false},
	} {
		p := self
		p.Runner, p.Space = row.runner, row.space
		if got := p.RunnerGone(); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

// TestNothingIsKnownWithoutAFile: also of what is not a generation, such as a path.
func TestNothingIsKnownWithoutAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks")
	folder, err := peers.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "x.json"), []byte(`{"generation":"../x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, generation := range []string{"", "../x", peers.Self("group").Generation, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"} {
		if _, state := folder.Look(generation); state != peers.Unknown {
			t.Errorf("%q: %v", generation, state)
		}
	}
	if alive, err := folder.Of("group"); err != nil || len(alive) != 0 {
		t.Errorf("of the group: %v, %v", alive, err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("looking created the folder: %v", err)
	}
}

// TestFilesOfTheDeadGoAfterAWhile: those of the living stay, whatever their age.
func TestFilesOfTheDeadGoAfterAWhile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks")
	folder := open(t, path)
	now := time.Now()
	join := func(now time.Time) (*peers.Member, string) {
		p := peers.Self("group")
		m, err := folder.Join(p, now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Leave() })
		return m, p.Generation
	}
	ended, dead := join(now)
	_, living := join(now)
	if err := ended.Leave(); err != nil {
		t.Fatal(err)
	}
	_, third := join(now.Add(8 * 24 * time.Hour))
	for generation, want := range map[string]peers.State{dead: peers.Unknown, living: peers.Alive, third: peers.Alive} {
		if _, state := folder.Look(generation); state != want {
			t.Errorf("%s: %v, want %v", generation, state, want)
		}
	}
}
