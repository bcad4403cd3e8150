package plugin_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// fault adds a fault that is written as text.
func (w *world) fault(t *testing.T, text string) {
	t.Helper()
	rule, err := sim.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	w.Inject(rule)
}

// watch updates as the runner does while it expects something.
func watch(t *testing.T, group provider.InstanceGroup, how time.Duration) map[string]provider.State {
	t.Helper()
	var last map[string]provider.State
	for end := time.Now().Add(how); time.Now().Before(end); {
		<-time.After(5 * time.Second)
		last = states(t, group)
	}
	return last
}

// TestNothingIsBelievedForEver: whatever the cloud shows of a server, or if it
// shows nothing, its slot is free again in the end, for a process that asked for
// it, and for one that found it.
func TestNothingIsBelievedForEver(t *testing.T) {
	t.Parallel()
	for fault, says := range map[string]string{
		"status,status=EXPIRED,match=flavor:m1.small": "EXPIRED", "stuck-building": "BUILD", "no-address": "address_family is ipv4",
		"unreadable": "not up 15m0s after its creation",
	} {
		for _, restarted := range []bool{false, true} {
			name := fault
			if restarted {
				name += ", restarted"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, sim.Options{})
					w.fault(t, fault)
					group := w.start(t, nil)
					increase(t, group, 1, 1)
					if got := count(watch(t, group, time.Minute), provider.StateCreating); got != 1 {
						t.Fatalf("after a minute: %d creating", got)
					}
					if restarted && fault != "unreadable" { // which no later process can know of
						w.shutdown(t, group)
						group = w.start(t, nil)
						watch(t, group, time.Minute)
					}
					if got := watch(t, group, 20*time.Minute); len(got) != 0 {
						t.Errorf("after the build timeout: %v", got)
					}
					if left := w.Snapshot().Servers; len(left) != 0 || w.log.lines(says) == 0 {
						t.Errorf("left: %v\n%s", left, w.log)
					}
				})
			})
		}
	}
}

// TestAnExpiredServerGetsNoJobs: one provider shows EXPIRED for servers that it
// takes back, and a reboot can hang. What runs there goes on, and no more is started
// until the cloud says that the server works.
func TestAnExpiredServerGetsNoJobs(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"EXPIRED", "UNKNOWN", "HARD_REBOOT", "REBOOT", "REBUILD", "active", "PREEMPTED"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				group := w.start(t, nil)
				name := w.up(t, group, 1)[0]
				show := func(status string, how time.Duration) {
					t.Helper()
					if err := w.SetStatus(name, status); err != nil {
						t.Fatal(err)
					}
					if got := watch(t, group, how); got[name] != provider.StateRunning {
						t.Errorf("reported: %v", got)
					}
				}
				show(status, 4*time.Minute)
				if err := group.Heartbeat(t.Context(), name); err != nil {
					t.Errorf("heartbeat after four minutes: %v", err)
				}
				show(status, 6*time.Minute)
				if err := group.Heartbeat(t.Context(), name); err == nil || !strings.Contains(err.Error(), status) {
					t.Errorf("heartbeat: %v", err)
				}
				if _, err := group.ConnectInfo(t.Context(), name); err == nil {
					t.Error("connect info as if it worked")
				}
				if got := w.log.lines("status that says nothing", status); got != 1 {
					t.Errorf("logged %d times", got)
				}
				show("ACTIVE", time.Minute)
				if _, err := group.ConnectInfo(t.Context(), name); err != nil {
					t.Errorf("once it works: %v", err)
				}
			})
		})
	}
}

// TestDeletionsThatLeaveTraces: ghosts, deleted servers without metadata, and
// deletions without effect are named at most once, with a reason.
func TestDeletionsThatLeaveTraces(t *testing.T) {
	t.Parallel()
	for fault, warnings := range map[string]int{
		"": 0, "lingering,by=3s": 0, "lingering,by=5m": 0, "bare": 0, "ghost": 3, "delete-ignored": 3,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				if fault != "" {
					w.fault(t, fault)
				}
				group := w.start(t, nil)
				names := w.up(t, group, 3)
				if _, err := group.Decrease(t.Context(), names); err != nil {
					t.Fatal(err)
				}
				<-time.After(1500 * time.Millisecond)
				listed, err := plugin.List(t.Context(), w.parsed(t), plugin.WithTransport(w.Transport()))
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range listed {
					if s.State == plugin.Foreign {
						t.Errorf("list calls an own server foreign: %+v", s)
					}
				}
				if got := watch(t, group, time.Hour); len(got) != 0 {
					t.Errorf("reported: %v", got)
				}
				if got := w.log.lines("[WARN]") + w.log.lines("[ERROR]"); got != warnings {
					t.Errorf("%d warnings, want %d:\n%s", got, warnings, w.log)
				}
				if strings.Contains(w.log.String(), `reason=""`) {
					t.Errorf("an empty reason:\n%s", w.log)
				}
			})
		})
	}
}

// TestClocksAreNotBelieved: a young server in BUILD is not deleted at a restart
// because the cloud's clock, or this machine's, is wrong. An old one is.
func TestClocksAreNotBelieved(t *testing.T) {
	t.Parallel()
	for _, ahead := range []string{"-20m", "20m", "-24h"} {
		t.Run(ahead, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{BuildTime: 10 * time.Minute})
				w.fault(t, "clock,by="+ahead)
				group := w.start(t, nil)
				increase(t, group, 3, 3)
				watch(t, group, 5*time.Minute)
				w.shutdown(t, group)
				group = w.start(t, nil)
				if got := count(watch(t, group, 2*time.Minute), provider.StateCreating); got != 3 {
					t.Errorf("two minutes after a restart: %d creating\n%s", got, w.log)
				}
				if got := count(watch(t, group, 5*time.Minute), provider.StateRunning); got != 3 {
					t.Errorf("later: %d running\n%s", got, w.log)
				}
			})
		})
	}
}
