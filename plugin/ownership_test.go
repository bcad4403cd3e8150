package plugin_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/peers"
)

// joinVariable makes this test binary a process that joins a group in the lock
// folder it names, prints its record, and waits to be killed.
const joinVariable = "PLUGIN_TEST_JOIN"

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
	self := peers.Self("of another process")
	if _, err := folder.Join(self, time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = json.NewEncoder(os.Stdout).Encode(self)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

// another starts a process that holds a lock.
func another(t *testing.T, locks string) (peers.Process, *exec.Cmd) {
	t.Helper()
	if err := os.MkdirAll(locks, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), joinVariable+"="+locks)
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
	return p, cmd
}

// locks is the lock folder of a world.
func (w *world) locks() string { return filepath.Join(filepath.Dir(w.clouds), "locks") }

// plant adds a running server of the group that some process made.
func (w *world) plant(t *testing.T, suffix, process string) string {
	t.Helper()
	name := groupName + "-" + suffix
	metadata := map[string]string{"fleeting:group": "fleeting:" + groupName}
	if process != "" {
		metadata["fleeting:process"] = process
	}
	if _, err := w.AddServer(sim.ServerSpec{Name: name, Tags: []string{"fleeting:" + groupName}, Metadata: metadata}); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestASecondProcessOfOneRunner: a runner whose token was changed starts a second
// plugin beside the first. Each has its own servers, and neither touches the
// other's, whatever becomes of the other.
func TestASecondProcessOfOneRunner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		first := w.start(t, map[string]any{"max_size": 5})
		old := w.up(t, first, 3)
		second := w.start(t, map[string]any{"max_size": 5})
		if got := states(t, second); len(got) != 0 {
			t.Errorf("the second found %v", got)
		}
		increase(t, second, 5, 2) // of five, with the three of the first
		<-time.After(time.Minute)
		if got := count(states(t, second), provider.StateRunning); got != 2 {
			t.Errorf("the second has %d running, want 2", got)
		}
		if got := states(t, first); len(got) != 3 {
			t.Errorf("the first has %v, want its three", got)
		}
		if w.log.lines("another process of this runner serves the group") == 0 || w.log.lines("[ERROR]") > 0 {
			t.Errorf("log:\n%s", w.log)
		}
		if taken, err := first.Decrease(t.Context(), old[:1]); err != nil || len(taken) != 1 {
			t.Errorf("decrease: %v, %v", taken, err)
		}
		<-time.After(time.Minute)
		states(t, first)
		states(t, second)
		increase(t, second, 5, 1)
		w.shutdown(t, first)
		for range 20 {
			<-time.After(time.Minute)
			states(t, second)
		}
		// Its runner lives, and so may the jobs on its servers.
		if _, left := w.Snapshot().Server(old[1]); !left {
			t.Error("the second deleted a server of the first")
		}
		w.shutdown(t, second)
		third := w.start(t, nil)
		if got := count(states(t, third), provider.StateRunning); got != 5 {
			t.Errorf("after a restart: %d running, want all five", got)
		}
	})
}

// TestServersThatNothingIsKnownOf: a process of another machine, or of a version
// that left no mark, is taken for dead at the start, as it is when a manager moves.
// What it makes while this one is at work proves that it lives.
func TestServersThatNothingIsKnownOf(t *testing.T) {
	t.Parallel()
	elsewhere := peers.Self("group").Generation + " ci-2"
	for name, process := range map[string]string{"another machine": elsewhere, "no mark": "", "a mark of no form": "../../x y"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				before := w.plant(t, "before00", process)
				<-time.After(time.Minute)
				group := w.start(t, nil)
				if got := states(t, group); got[before] != provider.StateRunning {
					t.Errorf("at the start: %v", got)
				}
				<-time.After(10 * time.Minute)
				after := w.plant(t, "after000", process)
				for range 10 {
					if got := states(t, group); len(got) != 1 || got[before] != provider.StateRunning {
						t.Errorf("later: %v", got)
					}
					<-time.After(time.Minute)
				}
				if _, left := w.Snapshot().Server(after); !left {
					t.Error("it was deleted")
				}
				if w.log.lines("another process makes servers in this group") != 1 {
					t.Errorf("log:\n%s", w.log)
				}
			})
		})
	}
}

// TestTheDoubtOfAProcessThatWasKilled: a creation that was under way when a process
// of this machine ended shows up a moment after the next one has started.
func TestTheDoubtOfAProcessThatWasKilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		group := w.start(t, nil)
		<-time.After(time.Minute)
		late := w.plant(t, "late0000", peers.Self("group").Generation+" "+host)
		if got := states(t, group); got[late] != provider.StateRunning {
			t.Errorf("reported: %v", got)
		}
	})
}

// TestServersOfAnotherRunner: two runners on one machine that share a group. While
// both live, each has its own servers; those of the one that ended are deleted.
func TestServersOfAnotherRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sim.Options{BuildTime: -1, DeleteTime: -1})
	other, cmd := another(t, w.locks())
	theirs := w.plant(t, "theirs00", other.Generation+" "+other.Host)
	group := w.start(t, nil)
	if got := states(t, group); len(got) != 0 {
		t.Errorf("reported: %v", got)
	}
	config := w.parsed(t)
	transport := plugin.WithTransport(w.Transport())
	listed, err := plugin.List(t.Context(), config, transport)
	if err != nil || len(listed) != 1 || listed[0].ProcessState != "alive" || !strings.Contains(listed[0].Process, fmt.Sprintf("process %d on", other.PID)) {
		t.Errorf("list: %+v, %v", listed, err)
	}
	gone, err := plugin.Cleanup(t.Context(), config, transport)
	if !errors.Is(err, plugin.ErrProcessAlive) || len(gone) != 0 || !strings.Contains(err.Error(), "stop its runner first") {
		t.Errorf("cleanup: %+v, %v", gone, err)
	}
	if _, left := w.Snapshot().Server(theirs); !left {
		t.Fatal("it was deleted")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	listed, err = plugin.List(t.Context(), config, transport)
	if err != nil || len(listed) != 1 || listed[0].ProcessState != "ended" {
		t.Errorf("list after its end: %+v, %v", listed, err)
	}
	gone, err = plugin.Cleanup(t.Context(), config, transport)
	if err != nil || len(gone) != 1 {
		t.Errorf("cleanup after its end: %+v, %v", gone, err)
	}
}

func (w *world) parsed(t *testing.T) plugin.Config {
	t.Helper()
	raw, err := json.Marshal(w.config(nil))
	if err != nil {
		t.Fatal(err)
	}
	config, err := plugin.ParseConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	return config
}
