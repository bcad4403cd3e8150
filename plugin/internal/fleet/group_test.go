package fleet_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// cloud is a cloud in memory. Its servers run at once.
type cloud struct {
	mu      sync.Mutex
	servers map[string]fleet.Server // by ID
	created int
	// onCreate, if not nil, decides about a creation: whether the server is
	// made, and the error to answer with.
	onCreate func(n int) (made bool, err error)
	hidden   bool // listings show nothing; lookups do
	deletes  int
}

func newCloud() *cloud { return &cloud{servers: map[string]fleet.Server{}} }

func (c *cloud) Create(_ context.Context, name string) (fleet.Created, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.created++
	made, err := true, error(nil)
	if c.onCreate != nil {
		made, err = c.onCreate(c.created)
	}
	id := fmt.Sprintf("id-%d", c.created)
	if made {
		c.servers[id] = fleet.Server{ID: id, Name: name, Owned: true, Phase: fleet.Running, Created: time.Now()}
	}
	if err != nil {
		return fleet.Created{}, err
	}
	return fleet.Created{ID: id}, nil
}

func (c *cloud) List(context.Context) ([]fleet.Server, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []fleet.Server
	for _, s := range c.servers {
		if !c.hidden {
			all = append(all, s)
		}
	}
	return all, nil
}

func (c *cloud) Find(_ context.Context, name string) ([]fleet.Server, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []fleet.Server
	for _, s := range c.servers {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found, nil
}

func (c *cloud) Get(_ context.Context, id string) (fleet.Server, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.servers[id]; ok {
		return s, nil
	}
	return fleet.Server{}, fleet.ErrGone
}

func (c *cloud) Delete(_ context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deletes++
	if _, ok := c.servers[id]; !ok {
		return fleet.ErrGone
	}
	delete(c.servers, id)
	return nil
}

func (c *cloud) ForceDelete(ctx context.Context, id string) error { return c.Delete(ctx, id) }
func (c *cloud) Unlock(context.Context, string) error             { return nil }

func (c *cloud) add(s fleet.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers[s.ID] = s
}

func (c *cloud) names() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := map[string]int{}
	for _, s := range c.servers {
		names[s.Name]++
	}
	return names
}

// run starts a group over a cloud in a synctest bubble.
func run(t *testing.T, c fleet.Cloud) *fleet.Group {
	t.Helper()
	group := fleet.New(settings(100), c, slog.New(slog.DiscardHandler), time.Now)
	return begin(t, group)
}

// settings are those of the plugin by default, with waits that are not spread.
func settings(size int) fleet.Settings {
	return fleet.Settings{
		Name: "g", MaxSize: size, Creates: fleet.Parallel{Start: 10, Most: 10}, Deletes: fleet.Parallel{Start: 10, Most: 10},
		BuildTimeout: 15 * time.Minute, DeleteTimeout: 10 * time.Minute, Random: func() float64 { return 0.5 },
	}
}

// begin has a group do its work until the test ends.
func begin(t *testing.T, group *fleet.Group) *fleet.Group {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		group.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return group
}

func report(t *testing.T, group *fleet.Group) map[string]fleet.State {
	t.Helper()
	states := map[string]fleet.State{}
	if err := group.Update(t.Context(), func(name string, state fleet.State) { states[name] = state }); err != nil {
		t.Fatal(err)
	}
	return states
}

// TestDoubtIsSettledByLookup: without any listing, the lookup by name alone
// finds the server of a creation in doubt, and none is created again.
func TestDoubtIsSettledByLookup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.onCreate = func(int) (bool, error) { return true, fleet.ErrDoubtful }
		group := run(t, c)
		if n := group.Increase(5); n != 5 {
			t.Fatalf("increase: got %d, want 5", n)
		}
		<-time.After(10 * time.Minute)
		for name := range c.names() {
			if _, err := group.Server(name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if c.created != 5 || len(c.names()) != 5 {
			t.Errorf("created %d servers under %d names, want 5", c.created, len(c.names()))
		}
	})
}

// TestAnotherTakesThePlaceOfADoubt: a server that is not found in six seconds
// holds up no job. The host counts another in place of it, in one report.
func TestAnotherTakesThePlaceOfADoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.onCreate = func(n int) (bool, error) {
			if n == 1 {
				return false, fleet.ErrDoubtful
			}
			return true, nil
		}
		group := run(t, c)
		group.Increase(1)
		name := only(t, group)
		<-time.After(5 * time.Second)
		if diff := cmp.Diff(map[string]fleet.State{name: fleet.Creating}, report(t, group)); diff != "" {
			t.Errorf("states after five seconds (-want +got):\n%s", diff)
		}
		<-time.After(2 * time.Second)
		got := report(t, group)
		if len(got) != 2 || got[name] != fleet.WasDeleted {
			t.Errorf("states after seven seconds: %v, want %s deleted and another in its place", got, name)
		}
		if got := report(t, group); len(got) != 1 || got[only(t, group)] != fleet.InUse {
			t.Errorf("states after that: %v, want one running", got)
		}
	})
}

// TestAJobWaitsForOneDoubt: when the other creation is in doubt, too, it has half the
// time, so that a job does not wait for one lost answer after the other.
func TestAJobWaitsForOneDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.onCreate = func(n int) (bool, error) {
			if n <= 4 {
				return false, fleet.ErrDoubtful
			}
			return true, nil
		}
		group := run(t, c)
		group.Increase(1)
		began := time.Now()
		for len(c.names()) == 0 && time.Since(began) < time.Hour {
			<-time.After(100 * time.Millisecond)
		}
		// 6 s, 3 s, 1.5 s and 1.5 s, and what calls take.
		if took := time.Since(began); took > 13*time.Second {
			t.Errorf("the fifth creation was sent after %v, want 12 s", took)
		}
	})
}

// TestALateServerIsNotASecondOne: a gateway passes a creation on after another
// took the place of its server. The late one goes, and is not reported.
func TestALateServerIsNotASecondOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.onCreate = func(n int) (bool, error) {
			if n == 1 {
				return false, fleet.ErrDoubtful
			}
			return true, nil
		}
		group := run(t, c)
		group.Increase(1)
		<-time.After(time.Second)
		lost := only(t, group)
		<-time.After(time.Minute)
		report(t, group)
		name := only(t, group)
		c.add(fleet.Server{ID: "late", Name: lost, Owned: true, Phase: fleet.Running, Created: time.Now()})
		report(t, group)
		<-time.After(time.Minute)
		if diff := cmp.Diff(map[string]int{name: 1}, c.names()); diff != "" || name == lost {
			t.Errorf("servers (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]fleet.State{name: fleet.InUse}, report(t, group)); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
	})
}

// TestAReleasedNameStaysReleased: the host gives a server up while its creation
// is in doubt; when the server shows, it is deleted and never reported.
func TestAReleasedNameStaysReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.onCreate = func(int) (bool, error) { return false, fleet.ErrDoubtful }
		group := run(t, c)
		group.Increase(1)
		<-time.After(time.Second)
		report(t, group)
		report(t, group) // of the name that was given up, for the last time
		name := only(t, group)
		group.Decrease([]string{name})
		<-time.After(10 * time.Minute)
		report(t, group)
		report(t, group)
		c.add(fleet.Server{ID: "late", Name: name, Owned: true, Phase: fleet.Running, Created: time.Now()})
		if got := report(t, group); len(got) != 0 {
			t.Errorf("reported: %v", got)
		}
		<-time.After(time.Minute)
		if len(c.names()) != 0 {
			t.Errorf("left: %v", c.names())
		}
	})
}

// TestHiddenServersAreConfirmed: an empty listing is no proof, and each GET of
// a missing server is made at most every ten seconds.
func TestHiddenServersAreConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		group := run(t, c)
		group.Increase(5)
		<-time.After(time.Second)
		report(t, group)
		c.mu.Lock()
		c.hidden = true
		c.mu.Unlock()
		for range 10 {
			for name, state := range report(t, group) {
				if state != fleet.InUse {
					t.Errorf("%s: got %s, want running", name, state)
				}
			}
			<-time.After(2 * time.Second)
		}
	})
}

func TestIncreaseIsBoundedByTheSizeOfTheGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		group := run(t, newCloud())
		if got := group.Increase(70) + group.Increase(70); got != 100 {
			t.Errorf("reserved: got %d, want 100", got)
		}
		if got := group.Increase(-3); got != 0 {
			t.Errorf("increase(-3): got %d", got)
		}
	})
}

func TestShutdownDeletesNothingOfItsOwnAccord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		group := run(t, c)
		group.Increase(3)
		<-time.After(time.Second)
		all := report(t, group)
		for name := range all {
			group.Decrease([]string{name})
			break
		}
		group.Shutdown(t.Context())
		if len(c.names()) != 2 || c.deletes != 1 {
			t.Errorf("%d servers left after %d deletions, want the 2 that nobody gave up", len(c.names()), c.deletes)
		}
		if got := group.Increase(1); got != 0 {
			t.Errorf("increase after shutdown: got %d", got)
		}
	})
}

func TestNamesAreValidHostNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		group := run(t, c)
		group.Increase(100)
		<-time.After(time.Second)
		names := report(t, group)
		if len(names) != 100 {
			t.Errorf("distinct names: got %d, want 100", len(names))
		}
		for name := range names {
			if !fleet.IsName("g", name) || strings.ToLower(name) != name {
				t.Errorf("odd name %q", name)
			}
		}
	})
	for name, want := range map[string]bool{
		"g-abcd1234": true, "g-abcd123": false, "g-abcd12345": false, "g-ABCD1234": false, "gg-abcd1234": false, "g-abcd-234": false, "g": false, "": false,
	} {
		if got := fleet.IsName("g", name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}
