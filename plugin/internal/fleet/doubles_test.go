package fleet_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// only returns the one name that a group reports.
func only(t *testing.T, group *fleet.Group) string {
	t.Helper()
	states := report(t, group)
	if len(states) != 1 {
		t.Fatalf("reported %v, want one instance", states)
	}
	for name := range states {
		return name
	}
	return ""
}

// TestTheSurvivorOfADoubleStays: when a second server of a name is gone, the
// first, which may be running a job, goes on.
func TestTheSurvivorOfADoubleStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		group := run(t, c)
		group.Increase(1)
		<-time.After(time.Second)
		name := only(t, group)
		c.add(fleet.Server{ID: "late", Name: name, Owned: true, Phase: fleet.Running, Created: time.Now()})
		report(t, group)
		<-time.After(2 * time.Minute)
		for range 5 {
			if got := report(t, group); got[name] != fleet.InUse {
				t.Errorf("states: %v, want %s running", got, name)
			}
			<-time.After(time.Minute)
		}
		if _, err := c.Get(t.Context(), "id-1"); err != nil {
			t.Errorf("the known server is gone: %v", err)
		}
		if _, err := c.Get(t.Context(), "late"); !errors.Is(err, fleet.ErrGone) {
			t.Error("the second server is still there")
		}
	})
}

// TestADeletionAheadOfTheServer: Nova may answer 404 about a server that it
// accepted a moment ago. That is no proof that there will be none.
func TestADeletionAheadOfTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.onCreate = func(int) (bool, error) { return false, nil } // accepted, shows later
		group := run(t, c)
		group.Increase(1)
		<-time.After(time.Second)
		name := only(t, group)
		group.Decrease([]string{name})
		<-time.After(time.Second)
		report(t, group)
		c.add(fleet.Server{ID: "id-1", Name: name, Owned: true, Phase: fleet.Running, Created: time.Now()})
		for range 60 {
			report(t, group)
			<-time.After(2 * time.Second)
		}
		if left := c.names(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// TestARisenServerIsDeleted: one that was proved gone, and yet is listed long
// after that, is not forgotten.
func TestARisenServerIsDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.onCreate = func(int) (bool, error) { return false, nil }
		group := run(t, c)
		group.Increase(1)
		<-time.After(time.Second)
		name := only(t, group)
		<-time.After(2 * time.Minute)
		report(t, group) // its absence is believed
		report(t, group)
		c.add(fleet.Server{ID: "id-1", Name: name, Owned: true, Phase: fleet.Running, Created: time.Now()})
		for range 10 {
			if got := report(t, group); len(got) != 0 {
				t.Errorf("reported: %v", got)
			}
			<-time.After(time.Minute)
		}
		if left := c.names(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// TestADeletedDoubleIsNotChosen: Nova lists deleted servers at times. One of
// them is no reason to delete the server that took its name since.
func TestADeletedDoubleIsNotChosen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		const name = "g-abcd1234"
		c.add(fleet.Server{ID: "old", Name: name, Owned: true, Phase: fleet.Gone, Created: time.Now().Add(-time.Hour)})
		c.add(fleet.Server{ID: "new", Name: name, Owned: true, Phase: fleet.Running, Created: time.Now()})
		group := run(t, c)
		for range 5 {
			if got := report(t, group); got[name] != fleet.InUse {
				t.Errorf("states: %v, want %s running", got, name)
			}
			<-time.After(time.Minute)
		}
		if _, err := c.Get(t.Context(), "new"); err != nil {
			t.Errorf("the new server is gone: %v", err)
		}
	})
}
