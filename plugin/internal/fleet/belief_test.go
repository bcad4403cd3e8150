package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// logged starts a group whose log can be read.
func logged(t *testing.T, c fleet.Cloud, change func(*fleet.Settings)) (*fleet.Group, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	set := settings(100)
	if change != nil {
		change(&set)
	}
	return begin(t, fleet.New(set, c, slog.New(slog.NewTextHandler(log, nil)), time.Now)), log
}

// watch updates every ten seconds, and returns what was reported last.
func watch(t *testing.T, group *fleet.Group, how time.Duration) map[string]fleet.State {
	t.Helper()
	var states map[string]fleet.State
	for end := time.Now().Add(how); time.Now().Before(end); {
		<-time.After(10 * time.Second)
		states = report(t, group)
	}
	return states
}

// silent is a cloud in which calls about one server fail.
type silent struct {
	*cloud

	id string
}

func (s *silent) List(ctx context.Context) ([]fleet.Server, error) {
	listed, err := s.cloud.List(ctx)
	var others []fleet.Server
	for _, server := range listed {
		if server.ID != s.id {
			others = append(others, server)
		}
	}
	return others, err
}

func (s *silent) Get(ctx context.Context, id string) (fleet.Server, error) {
	if id == s.id {
		return fleet.Server{}, fleet.ErrUnanswered
	}
	return s.cloud.Get(ctx, id)
}

func (s *silent) Delete(ctx context.Context, id string) error {
	if id == s.id {
		return fleet.ErrUnanswered
	}
	return s.cloud.Delete(ctx, id)
}

func (s *silent) ForceDelete(ctx context.Context, id string) error { return s.Delete(ctx, id) }

// TestNothingIsBuiltForEver: whatever the cloud shows of a server, or if it shows
// nothing, the build timeout ends it: for a server that was asked for, and for one
// that is found at a start.
func TestNothingIsBuiltForEver(t *testing.T) {
	t.Parallel()
	for name, phase := range map[string]fleet.Phase{
		"in BUILD, or without an address": fleet.Building, "a status that says nothing": fleet.Unknown, "a lost host": fleet.Suspect,
	} {
		for how, age := range map[string]time.Duration{"asked for": 0, "found, young": time.Minute, "found, old": time.Hour} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c := newCloud()
					c.onCreate = func(int) (bool, error) { return false, nil }
					group, log := logged(t, c, nil)
					id, server := "found", "g-abcd1234"
					if age == 0 {
						group.Increase(1)
						<-time.After(time.Second)
						id, server = "id-1", only(t, group)
					}
					c.add(fleet.Server{ID: id, Name: server, Owned: true, Phase: phase, Detail: "EXPIRED", Created: time.Now().Add(-age)})
					if got := watch(t, group, 50*time.Second)[server]; phase != fleet.Suspect && got != fleet.Creating {
						t.Errorf("at first: %q", got)
					}
					watch(t, group, 16*time.Minute)
					if left := c.names(); len(left) != 0 || !strings.Contains(log.String(), "EXPIRED") {
						t.Errorf("left: %v\n%s", left, log)
					}
				})
			})
		}
	}
}

// TestAServerThatTheCloudIsSilentAbout: calls about one server fail for ever while
// all others work. Its build is given up, and in the end its slot, too.
func TestAServerThatTheCloudIsSilentAbout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &silent{cloud: newCloud(), id: "id-1"}
		group, log := logged(t, s, nil)
		group.Increase(1)
		<-time.After(time.Second)
		server := only(t, group)
		if got := watch(t, group, 14*time.Minute)[server]; got != fleet.Creating {
			t.Errorf("at first: %q", got)
		}
		if got := watch(t, group, 2*time.Minute)[server]; got != fleet.BeingDeleted {
			t.Errorf("after the build timeout: %q", got)
		}
		if got, held := watch(t, group, 20*time.Minute)[server]; held {
			t.Errorf("after the delete timeout: %q", got)
		}
		if n := strings.Count(log.String(), "was quarantined"); n != 1 {
			t.Errorf("quarantined %d times:\n%s", n, log)
		}
	})
}

// TestARunningServerThatNothingIsKnownOf: after a while it gets no more jobs, is
// reported as before, so that those on it go on, and gets jobs again once the cloud
// is clear about it. An outage of the whole cloud changes nothing.
func TestARunningServerThatNothingIsKnownOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		group, log := logged(t, c, nil)
		group.Increase(1)
		<-time.After(time.Second)
		server := only(t, group)
		show := func(phase fleet.Phase, detail string) {
			c.add(fleet.Server{ID: "id-1", Name: server, Owned: true, Phase: phase, Detail: detail, Created: time.Now()})
		}
		takesJobs := func() bool {
			_, err := group.Server(server)
			checked := group.Check(t.Context(), server)
			if (err == nil) != (checked == nil) || err != nil && !errors.Is(err, fleet.ErrNotRunning) {
				t.Errorf("connect info: %v, heartbeat: %v", err, checked)
			}
			return err == nil
		}
		<-time.After(time.Hour) // without a listing: as in an outage
		if !takesJobs() {
			t.Error("an outage keeps jobs from a running server")
		}
		report(t, group)
		show(fleet.Unknown, "EXPIRED")
		if got := watch(t, group, 4*time.Minute)[server]; got != fleet.InUse || !takesJobs() {
			t.Errorf("within the grace: %q, takes jobs: %v", got, takesJobs())
		}
		if got := watch(t, group, time.Hour)[server]; got != fleet.InUse || takesJobs() {
			t.Errorf("after the grace: %q, takes jobs: %v", got, takesJobs())
		}
		show(fleet.Running, "ACTIVE")
		if got := watch(t, group, 10*time.Second)[server]; got != fleet.InUse || !takesJobs() {
			t.Errorf("once it is clear: %q, takes jobs: %v", got, takesJobs())
		}
		if n := strings.Count(log.String(), "status=EXPIRED"); n != 1 {
			t.Errorf("the cloud's words were logged %d times:\n%s", n, log)
		}
	})
}

// TestARunningServerThatTheCloudIsSilentAbout: no listing has it, and calls about
// it fail.
func TestARunningServerThatTheCloudIsSilentAbout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &silent{cloud: newCloud()}
		group := run(t, s)
		group.Increase(1)
		<-time.After(time.Second)
		server := only(t, group)
		s.id = "id-1"
		if got := watch(t, group, 10*time.Minute)[server]; got != fleet.InUse {
			t.Errorf("it is reported as %q", got)
		}
		if _, err := group.Server(server); !errors.Is(err, fleet.ErrNotRunning) {
			t.Errorf("it takes jobs: %v", err)
		}
	})
}

// ghostly is a cloud whose listings go on showing servers that are deleted.
type ghostly struct {
	*cloud

	ghosts []fleet.Server
}

func (g *ghostly) List(ctx context.Context) ([]fleet.Server, error) {
	listed, err := g.cloud.List(ctx)
	return append(listed, g.ghosts...), err
}

// TestAGhostIsQuarantined: one line, and an attempt as rarely as for what is
// quarantined, until it is not listed any more.
func TestAGhostIsQuarantined(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &ghostly{cloud: newCloud()}
		group, log := logged(t, c, nil)
		group.Increase(1)
		<-time.After(time.Second)
		server := only(t, group)
		ghost, err := c.Get(t.Context(), "id-1")
		if err != nil {
			t.Fatal(err)
		}
		c.ghosts = []fleet.Server{ghost}
		group.Decrease([]string{server})
		if got := watch(t, group, 6*time.Hour); len(got) != 0 {
			t.Errorf("reported: %v", got)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "the cloud says does not exist") {
			t.Errorf("%d warnings:\n%s", n, log)
		}
		if c.deletes > 45 {
			t.Errorf("%d deletions in six hours", c.deletes)
		}
	})
}

// TestOwnServersWithoutTheirMark: Nova shows servers that it deletes, or has
// deleted, without their metadata. They are known by their ID, or by where they go.
func TestOwnServersWithoutTheirMark(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &ghostly{cloud: newCloud()}
		c.ghosts = []fleet.Server{
			{ID: "old", Name: "g-abcd1234", Phase: fleet.Gone, Detail: "DELETED"}, // of an earlier process
			{ID: "going", Name: "g-abcd5678", Phase: fleet.Deleting, Detail: "ACTIVE (deleting)"},
		}
		group, log := logged(t, c, nil)
		group.Increase(3)
		<-time.After(time.Second)
		var names []string
		for name := range report(t, group) {
			names = append(names, name)
			s := fleet.Server{Name: name, Phase: fleet.Gone, Detail: "DELETED"}
			for _, id := range []string{"id-1", "id-2", "id-3"} {
				if known, err := c.Get(t.Context(), id); err == nil && known.Name == name {
					s.ID = id
				}
			}
			c.ghosts = append(c.ghosts, s)
		}
		group.Decrease(names)
		if got := watch(t, group, time.Minute); len(got) != 0 {
			t.Errorf("reported: %v", got)
		}
		if strings.Contains(log.String(), "level=WARN") {
			t.Errorf("warnings:\n%s", log)
		}
		c.ghosts = nil
		c.add(fleet.Server{ID: "other", Name: "g-zzzz1234", Phase: fleet.Running, Created: time.Now()})
		report(t, group)
		if !strings.Contains(log.String(), "not its name and owner mark") {
			t.Errorf("nothing is said of a server that is not the group's:\n%s", log)
		}
	})
}

// table tells whose servers are, by what they say of their process.
type table map[string]fleet.Peer

func (p table) Of(s fleet.Server) fleet.Peer { return p[s.Process] }

// TestServersOfOtherProcesses: those of a process that lives are neither reported
// nor touched, and count for the group's limit; those of one that ended are deleted.
// Each process is named once.
func TestServersOfOtherProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		peers := table{
			"mine": {}, "other": {Standing: fleet.Others, Name: "process 7 on b"},
			"old": {Standing: fleet.Others, Name: "process 8 on a", Expected: true}, "ended": {Standing: fleet.Left, Name: "process 9 on a"},
		}
		for id, process := range map[string]string{"1": "mine", "2": "other", "3": "other", "4": "old", "5": "ended"} {
			c.add(fleet.Server{ID: id, Name: "g-abcd000" + id, Owned: true, Process: process, Phase: fleet.Running, Created: time.Now()})
		}
		group, log := logged(t, c, func(s *fleet.Settings) { s.Peers, s.MaxSize = peers, 10 })
		got := watch(t, group, time.Minute)
		if len(got) != 1 || got["g-abcd0001"] != fleet.InUse {
			t.Errorf("reported: %v", got)
		}
		if left := c.names(); len(left) != 4 || left["g-abcd0005"] != 0 {
			t.Errorf("left: %v", left)
		}
		if n := group.Increase(100); n != 6 {
			t.Errorf("increase: %d, want 6 of 10", n)
		}
		for text, want := range map[string]int{
			"level=ERROR": 1, "process 7 on b": 1, "level=INFO msg=\"another process of this runner": 1, "process 8 on a": 1, "process 9 on a": 1,
		} {
			if n := strings.Count(log.String(), text); n != want {
				t.Errorf("%q %d times, want %d:\n%s", text, n, want, log)
			}
		}
		peers["other"] = fleet.Peer{Standing: fleet.Left, Name: "process 7 on b"}
		watch(t, group, time.Minute)
		if left := c.names(); left["g-abcd0002"]+left["g-abcd0003"] != 0 || left["g-abcd0004"] != 1 {
			t.Errorf("left once the other process has ended: %v", left)
		}
	})
}
