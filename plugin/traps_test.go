package plugin_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// The traps of fleeting's contract, each of which has broken a published
// plugin. The numbers are those of docs/explanation.

// up starts n servers and returns their names.
func (w *world) up(t *testing.T, group provider.InstanceGroup, n int) []string {
	t.Helper()
	increase(t, group, n, n)
	<-time.After(10 * time.Second)
	reported := states(t, group)
	if got := count(reported, provider.StateRunning); got != n {
		t.Fatalf("running: got %d, want %d: %v", got, n, reported)
	}
	return names(reported)
}

func increase(t *testing.T, group provider.InstanceGroup, n, want int) {
	t.Helper()
	if got, err := group.Increase(t.Context(), n); got != want || err != nil {
		t.Fatalf("increase(%d): got %d, %v, want %d", n, got, err, want)
	}
}

func TestTrap01AResultIsNeverReturnedWithAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		w.Inject(sim.Rule{Operation: sim.OpServerCreate, Every: 3, Fault: sim.Refuse(http.StatusForbidden, "Quota exceeded")})
		increase(t, group, 7, 7)
		<-time.After(10 * time.Second)
		w.Inject(sim.Rule{Operation: sim.OpServerDelete, Every: 2, Fault: sim.Refuse(http.StatusConflict, "busy")})
		all := names(states(t, group))
		got, err := group.Decrease(t.Context(), all)
		if diff := cmp.Diff(all, got); diff != "" || err != nil {
			t.Errorf("decrease: error %v, (-want +got):\n%s", err, diff)
		}
		<-time.After(5 * time.Minute)
		states(t, group)
		if left := w.Snapshot().Servers; len(left) != 0 {
			t.Errorf("servers left: %+v", left)
		}
	})
}

func TestTrap02EveryCountedUnitIsReported(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		inject func(w *world)
	}{
		{"given up before the first listing", func(w *world) {
			w.Inject(sim.Rule{Operation: sim.OpServerCreate, Fault: sim.Refuse(http.StatusForbidden, "Quota exceeded")})
		}},
		{"refused", func(w *world) {
			w.Inject(sim.Rule{Operation: sim.OpServerCreate, Fault: sim.Refuse(http.StatusForbidden, "Quota exceeded")})
		}},
		{"born in ERROR", func(w *world) {
			w.SetFates(func(int, sim.ServerInfo) sim.Fate {
				return sim.Fate{Fault: sim.FaultNoValidHost, Hostless: true, BuildTime: -1}
			})
		}},
		{"vanished before the first listing", func(w *world) {
			w.SetFates(func(int, sim.ServerInfo) sim.Fate { return sim.Fate{HiddenFor: time.Hour} })
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				group := w.start(t, nil)
				row.inject(w)
				increase(t, group, 3, 3)
				<-time.After(5 * time.Second)
				if row.name == "given up before the first listing" {
					<-time.After(20 * time.Minute)
				}
				if row.name == "vanished before the first listing" {
					for _, s := range w.Snapshot().Servers {
						if err := w.Destroy(s.ID); err != nil {
							t.Error(err)
						}
					}
				}
				seen := map[string]bool{}
				for range 900 {
					for id, state := range states(t, group) {
						if state == provider.StateDeleted && !seen[id] {
							t.Fatalf("%s was first reported as deleted", id)
						}
						seen[id] = true
					}
					<-time.After(2 * time.Second)
				}
				if len(seen) != 3 {
					t.Errorf("reported: got %d IDs, want the 3 that were counted", len(seen))
				}
				if left := states(t, group); len(left) != 0 {
					t.Errorf("slots still held: %v", left)
				}
			})
		})
	}
}

func TestTrap03EveryServerIsReportedWhateverItsStatus(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status string
		want   provider.State
	}{
		{"ACTIVE", provider.StateRunning},
		{"MIGRATING", provider.StateRunning},
		{"REBOOT", provider.StateRunning},
		{"HARD_REBOOT", provider.StateRunning},
		{"RESIZE", provider.StateRunning},
		{"VERIFY_RESIZE", provider.StateRunning},
		{"PASSWORD", provider.StateRunning},
		{"UNKNOWN", provider.StateRunning},
		{"A_STATUS_OF_THE_FUTURE", provider.StateRunning},
		{"SHUTOFF", provider.StateDeleting},
		{"PAUSED", provider.StateDeleting},
		{"SUSPENDED", provider.StateDeleting},
		{"SHELVED", provider.StateDeleting},
		{"SHELVED_OFFLOADED", provider.StateDeleting},
		{"RESCUE", provider.StateDeleting},
		{"ERROR", provider.StateDeleting},
		{"SOFT_DELETED", provider.StateDeleted},
		{"DELETED", provider.StateDeleted},
	} {
		t.Run(row.status, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				group := w.start(t, nil)
				name := w.up(t, group, 1)[0]
				if err := w.SetStatus(name, row.status); err != nil {
					t.Fatal(err)
				}
				if got := states(t, group)[name]; got != row.want {
					t.Errorf("state of a server in %s: got %q, want %q", row.status, got, row.want)
				}
			})
		})
	}
}

func TestTrap04WhatIsReportedAsDeletingIsDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		name := w.up(t, group, 1)[0]
		w.Inject(sim.Rule{Operation: sim.OpServerDelete, Times: 3, Fault: sim.Refuse(http.StatusInternalServerError, "no")})
		if err := w.Break(name, "the host burnt down"); err != nil {
			t.Fatal(err)
		}
		if got := states(t, group)[name]; got != provider.StateDeleting {
			t.Fatalf("state of a broken server: got %q, want deleting", got)
		}
		for range 120 { // three waits of a minute, more or less
			<-time.After(2 * time.Second)
			states(t, group)
		}
		if left := w.Snapshot().Servers; len(left) != 0 {
			t.Errorf("the broken server is left, though nobody else deletes it: %+v", left)
		}
		if got := w.Count(sim.OpServerDelete); got != 4 {
			t.Errorf("deletions: got %d, want one a minute until it was gone: 4", got)
		}
	})
}

func TestTrap05AServerBeingDeletedIsStillACTIVE(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		name := w.up(t, group, 1)[0]
		if err := w.SetFate(name, sim.Fate{DeleteTime: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if _, err := group.Decrease(t.Context(), []string{name}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		server, _ := w.Snapshot().Server(name)
		if server.Status != "ACTIVE" || server.TaskState != "deleting" {
			t.Fatalf("the cloud shows %s %s; the test needs ACTIVE deleting", server.Status, server.TaskState)
		}
		// A plugin that starts now has only the listing to go by.
		w.shutdown(t, group)
		second := w.start(t, nil)
		if got := states(t, second)[name]; got != provider.StateDeleting {
			t.Errorf("state: got %q, want deleting", got)
		}
	})
}

func TestTrap06NoMoreThanAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		for _, n := range []int{-1, 0, 1, 5} {
			got, err := group.Increase(t.Context(), n)
			if err != nil || got > max(n, 0) {
				t.Errorf("increase(%d): got %d, %v", n, got, err)
			}
		}
		increase(t, group, 5000, 1000-6)
		given := []string{"runner-unknown1", "somebody-else", ""}
		got, err := group.Decrease(t.Context(), given)
		if err != nil {
			t.Errorf("decrease: %v", err)
		}
		for _, id := range got {
			if !slices.Contains(given, id) {
				t.Errorf("decrease returned %q, which it was not given", id)
			}
		}
	})
}

func TestTrap07ConnectInfoMakesNoCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		name := w.up(t, group, 1)[0]
		w.Inject(sim.Rule{Fault: sim.Refuse(http.StatusServiceUnavailable, "down")})
		calls := len(w.Calls())
		info, err := group.ConnectInfo(t.Context(), name)
		if err != nil {
			t.Fatalf("connect info while the API is down: %v", err)
		}
		if info.InternalAddr == "" || info.ExternalAddr == "" || info.Username != "runner" {
			t.Errorf("incomplete connect info: %q %q %q", info.InternalAddr, info.ExternalAddr, info.Username)
		}
		if got := len(w.Calls()) - calls; got != 0 {
			t.Errorf("API calls for connect info: got %d, want 0", got)
		}
	})
}

func TestTrap09NothingBlocksTheLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		all := w.up(t, group, 3)
		w.Inject(sim.Rule{Fault: sim.Hang(), For: 3 * time.Minute})
		for name, call := range map[string]func() error{
			"increase":     func() error { _, err := group.Increase(t.Context(), 5); return err },
			"decrease":     func() error { _, err := group.Decrease(t.Context(), all[:1]); return err },
			"connect info": func() error { _, err := group.ConnectInfo(t.Context(), all[1]); return err },
		} {
			started := time.Now()
			if err := call(); err != nil {
				t.Errorf("%s while the API hangs: %v", name, err)
			}
			if took := time.Since(started); took != 0 {
				t.Errorf("%s took %v while the API hangs", name, took)
			}
		}
		started := time.Now()
		if _, err := update(t, group); err == nil {
			t.Error("update while the API hangs: no error")
		}
		if took := time.Since(started); took > time.Minute {
			t.Errorf("update took %v while the API hangs", took)
		}
		started = time.Now()
		if err := group.Heartbeat(t.Context(), all[2]); err != nil {
			t.Errorf("heartbeat while the API hangs: %v", err)
		}
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("heartbeat took %v while the API hangs", took)
		}
	})
}

func TestTrap10UpdateFailsOnlyWithItsListing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		w.up(t, group, 3)
		w.Inject(sim.Rule{Operation: sim.OpServerDetail, Times: 2, Fault: sim.Refuse(http.StatusBadGateway, "")})
		w.Inject(sim.Rule{Operation: sim.OpServerShow, Fault: sim.Refuse(http.StatusInternalServerError, "")})
		w.SetListingLag(time.Hour)
		increase(t, group, 1, 1)
		<-time.After(30 * time.Second)
		reported := states(t, group)
		if count(reported, provider.StateRunning) != 3 || count(reported, provider.StateCreating) != 1 {
			t.Errorf("reported: %v", reported)
		}
	})
}

func TestTrap11AForeignServerGetsNoJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		foreign := []sim.ServerSpec{
			{Name: "runner-abcdefgh", Tags: []string{groupTag}},                                                               // no owner mark
			{Name: "runner-abcdefgi", Tags: []string{groupTag}, Metadata: map[string]string{"fleeting:group": "other"}},       // another's
			{Name: "database", Tags: []string{groupTag}, Metadata: map[string]string{"fleeting:group": groupTag}},             // another name
			{Name: "runner-abc", Tags: []string{groupTag}, Metadata: map[string]string{"fleeting:group": groupTag}},           // too short
			{Name: "runner-x-abcdefgh", Tags: []string{groupTag}, Metadata: map[string]string{"fleeting:group": groupTag}},    // another group's
			{Name: "runner-ABCDEFGH", Tags: []string{groupTag}, Metadata: map[string]string{"fleeting:group": groupTag}},      // not our letters
			{Name: "runner-abcdefgj", Tags: []string{"else"}, Metadata: map[string]string{"fleeting:group": "fleeting:else"}}, // not ours at all
		}
		for _, spec := range foreign {
			spec.Flavor = "m1.small"
			if _, err := w.AddServer(spec); err != nil {
				t.Fatal(err)
			}
		}
		group := w.start(t, nil)
		for range 3 {
			if got := states(t, group); len(got) != 0 {
				t.Fatalf("foreign servers were reported: %v", got)
			}
			<-time.After(time.Minute)
		}
		ours := w.up(t, group, 1)
		if _, err := group.Decrease(t.Context(), append(ours, "runner-abcdefgh")); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Minute)
		states(t, group)
		if got := len(w.Snapshot().Servers); got != len(foreign) {
			t.Errorf("foreign servers left: got %d, want all %d", got, len(foreign))
		}
		if got := w.log.lines("leaving it alone", "runner-abcdefgh"); got != 1 {
			t.Errorf("lines about a foreign server: got %d, want 1", got)
		}
	})
}
