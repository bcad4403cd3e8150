package plugin_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// TestFaultMatrix drives the plugin through fleeting's own provisioner against
// a cloud with one fault per row, on a clock that jumps. However bad the
// cloud was, in the end exactly the wanted servers exist, none is an orphan,
// no slot is lost, and there were never more than wanted.
func TestFaultMatrix(t *testing.T) {
	t.Parallel()
	const wanted = 10
	errorBorn := sim.Fate{Fault: sim.FaultNoValidHost, Hostless: true}
	for _, row := range []struct {
		name    string
		options sim.Options
		inject  func(t *testing.T, w *world)
		during  func(t *testing.T, w *world, s *scaler)
		lasts   time.Duration
		config  map[string]any
		// keepsServers tells that no server, and so no job, may be lost.
		keepsServers bool
	}{
		{name: "no fault", lasts: time.Minute, keepsServers: true},
		{
			name: "503 after commit", keepsServers: true, lasts: 10 * time.Minute,
			inject: func(_ *testing.T, w *world) {
				w.Inject(sim.Rule{Operation: sim.OpServerCreate, Fault: sim.CommitThenStatus(http.StatusServiceUnavailable)})
			},
		},
		{
			name: "504 after commit on every third", keepsServers: true, lasts: 10 * time.Minute,
			inject: func(_ *testing.T, w *world) {
				w.Inject(sim.Rule{Operation: sim.OpServerCreate, Every: 3, Fault: sim.CommitThenStatus(http.StatusGatewayTimeout)})
			},
		},
		{
			name: "503 without commit, twenty times", keepsServers: true, lasts: 2 * time.Hour,
			inject: func(_ *testing.T, w *world) {
				w.Inject(sim.Rule{Operation: sim.OpServerCreate, Times: 20, Fault: sim.Refuse(http.StatusServiceUnavailable, "down")})
			},
		},
		{
			name: "reset after commit", keepsServers: true, lasts: 10 * time.Minute,
			inject: func(_ *testing.T, w *world) {
				w.Inject(sim.Rule{Operation: sim.OpServerCreate, Fault: sim.CommitThenReset()})
			},
		},
		{
			name: "hang after commit", keepsServers: true, lasts: 15 * time.Minute,
			inject: func(_ *testing.T, w *world) {
				w.Inject(sim.Rule{Operation: sim.OpServerCreate, Share: 0.5, Fault: sim.CommitThenHang()})
			},
		},
		{
			name: "truncated body of every create", keepsServers: true, lasts: 5 * time.Minute,
			inject: func(_ *testing.T, w *world) {
				w.Inject(sim.Rule{Operation: sim.OpServerCreate, Fault: sim.CommitThenTruncate()})
			},
		},
		{
			name: "truncated body of every third call", keepsServers: true, lasts: 10 * time.Minute,
			inject: func(_ *testing.T, w *world) {
				w.Inject(sim.Rule{Operation: "compute:*", Every: 3, Fault: sim.CommitThenTruncate()})
			},
		},
		{
			name: "429 storm", keepsServers: true, lasts: 30 * time.Minute,
			inject: func(_ *testing.T, w *world) {
				w.Inject(sim.Rule{Operation: "compute:server*", Share: 0.5, Times: 200, Fault: sim.RateLimited("2")})
			},
		},
		{
			name: "429 storm without Retry-After", keepsServers: true, lasts: 30 * time.Minute,
			inject: func(_ *testing.T, w *world) {
				w.Inject(sim.Rule{Operation: "compute:server*", Share: 0.5, Times: 200, Fault: sim.RateLimited("")})
			},
		},
		{name: "tokens that live 3 s", keepsServers: true, lasts: 10 * time.Minute, options: sim.Options{TokenLife: 3 * time.Second}},
		{
			name: "tokens revoked", keepsServers: true, lasts: 5 * time.Minute,
			during: func(_ *testing.T, w *world, _ *scaler) {
				for range 20 {
					w.RevokeTokens()
					<-time.After(7 * time.Second)
				}
			},
		},
		{
			name: "the first thirty born in ERROR", lasts: 8 * time.Hour,
			inject: func(_ *testing.T, w *world) {
				w.SetFates(func(n int, _ sim.ServerInfo) sim.Fate {
					if n <= 30 {
						return errorBorn
					}
					return sim.Fate{}
				})
			},
		},
		{
			name: "30 % born in ERROR", lasts: 3 * time.Hour,
			inject: func(_ *testing.T, w *world) {
				w.SetFates(func(n int, _ sim.ServerInfo) sim.Fate {
					if n%10 < 3 {
						return sim.Fate{Fault: "Build of instance aborted: the hypervisor said no"}
					}
					return sim.Fate{}
				})
			},
		},
		{
			name: "listings lag 10 s", keepsServers: true, lasts: 5 * time.Minute,
			inject: func(_ *testing.T, w *world) { w.SetListingLag(10 * time.Second) },
		},
		{
			name: "a GET of a new server is 404 for 20 s, and listings hide it", keepsServers: true, lasts: 5 * time.Minute,
			inject: func(_ *testing.T, w *world) {
				w.SetFates(func(int, sim.ServerInfo) sim.Fate {
					return sim.Fate{HiddenFor: 20 * time.Second, MissingFor: 20 * time.Second}
				})
			},
		},
		{
			name: "cell down for a minute, twice", keepsServers: true, lasts: 10 * time.Minute,
			during: func(_ *testing.T, w *world, _ *scaler) {
				for range 2 {
					<-time.After(time.Minute)
					w.SetCellDown(true)
					<-time.After(time.Minute)
					w.SetCellDown(false)
				}
			},
		},
		{
			name: "network outage of 10 min", keepsServers: true, lasts: 40 * time.Minute,
			during: func(_ *testing.T, w *world, _ *scaler) {
				<-time.After(3 * time.Second)
				w.Inject(sim.Rule{For: 10 * time.Minute, Fault: sim.Reset()})
			},
		},
		{
			name: "network outage of 10 min while servers build", keepsServers: true, lasts: 40 * time.Minute,
			options: sim.Options{BuildTime: time.Minute},
			during: func(_ *testing.T, w *world, _ *scaler) {
				<-time.After(4 * time.Second)
				w.Inject(sim.Rule{For: 10 * time.Minute, Fault: sim.Reset()})
			},
		},
		{
			name: "API hangs for 5 min", keepsServers: true, lasts: 40 * time.Minute,
			during: func(_ *testing.T, w *world, _ *scaler) {
				<-time.After(3 * time.Second)
				w.Inject(sim.Rule{For: 5 * time.Minute, Fault: sim.Hang()})
			},
		},
		{
			name: "a proxy says 404 to everything for a minute", keepsServers: true, lasts: 10 * time.Minute,
			during: func(_ *testing.T, w *world, _ *scaler) {
				<-time.After(time.Minute)
				w.Inject(sim.Rule{For: time.Minute, Fault: sim.Fault{Status: http.StatusNotFound, Body: "<html>no such site</html>"}})
			},
		},
		{
			name: "cell down, and a proxy says 404 to what is asked for", keepsServers: true, lasts: 10 * time.Minute,
			during: func(_ *testing.T, w *world, _ *scaler) {
				<-time.After(time.Minute)
				w.Inject(sim.Rule{
					Operation: sim.OpServerShow, For: 3 * time.Minute,
					Fault: sim.Fault{Status: http.StatusNotFound, Body: "<html>no such site</html>"},
				})
				w.SetCellDown(true)
				<-time.After(3 * time.Minute)
				w.SetCellDown(false)
			},
		},
		{
			// Of creates that come together Nova accepts more than the quota
			// allows; the rest end in ERROR, before they could run a job.
			name: "quota exceeded in mid-round", lasts: 3 * time.Hour,
			inject: func(t *testing.T, w *world) {
				t.Helper()
				setQuota(t, w, 4)
			},
			during: func(t *testing.T, w *world, _ *scaler) {
				t.Helper()
				<-time.After(20 * time.Minute)
				if got := w.Count(sim.OpServerCreate); got > 25 {
					t.Errorf("creations in 20 minutes at the quota: got %d, want at most 25", got)
				}
				setQuota(t, w, 100)
			},
		},
		{
			name: "every third create refused", keepsServers: true, lasts: 2 * time.Hour,
			inject: func(_ *testing.T, w *world) {
				w.Inject(sim.Rule{Operation: sim.OpServerCreate, Every: 3, Fault: sim.Refuse(http.StatusForbidden, "Quota exceeded for ram")})
			},
		},
		{
			name: "stuck in BUILD", lasts: 3 * time.Hour,
			inject: func(_ *testing.T, w *world) {
				w.SetFates(func(n int, _ sim.ServerInfo) sim.Fate { return sim.Fate{StuckBuilding: n <= 3} })
			},
		},
		{
			name: "servers deleted by hand", lasts: 10 * time.Minute,
			during: func(t *testing.T, w *world, _ *scaler) {
				t.Helper()
				<-time.After(time.Minute)
				for _, s := range w.Snapshot().Servers[:4] {
					if err := w.Destroy(s.Name); err != nil {
						t.Error(err)
					}
				}
			},
		},
		{
			name: "guests power off", lasts: 10 * time.Minute,
			during: func(t *testing.T, w *world, _ *scaler) {
				t.Helper()
				<-time.After(time.Minute)
				for _, s := range w.Snapshot().Servers[:4] {
					if err := w.PowerOff(s.Name); err != nil {
						t.Error(err)
					}
				}
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, row.options)
				group := w.newGroup(t, row.config)
				if row.inject != nil {
					row.inject(t, w)
				}
				s := w.scale(t, group, wanted, wanted)
				started := time.Now()
				if row.during != nil {
					row.during(t, w, s)
				}
				<-time.After(row.lasts - time.Since(started))
				s.assertExact(t, wanted)
				if made := w.Snapshot().ServersCreated; row.keepsServers && made != wanted {
					t.Errorf("servers made: got %d, want %d: jobs were lost", made, wanted)
				}
				t.Logf("calls: %d create, %d list, %d show, %d delete, %d token; %d servers made, %d pauses",
					w.Count(sim.OpServerCreate), w.Count(sim.OpServerDetail), w.Count(sim.OpServerShow), w.Count(sim.OpServerDelete),
					w.Count(sim.OpTokenCreate), w.Snapshot().ServersCreated, w.log.lines("scale-up paused"))
				s.stop(t)
			})
		})
	}
}

func setQuota(t *testing.T, w *world, instances int) {
	t.Helper()
	err := w.SetQuota(sim.DefaultProject, func(q *sim.Quota) { q.Instances = instances })
	if err != nil {
		t.Fatal(err)
	}
}

// TestDeletionMatrix has servers deleted under faults: in the end none is
// left, none holds a slot, and each deletion was retried without a storm.
func TestDeletionMatrix(t *testing.T) {
	t.Parallel()
	const wanted = 5
	for _, row := range []struct {
		name   string
		inject func(t *testing.T, w *world)
		lasts  time.Duration
	}{
		{name: "no fault", lasts: 2 * time.Minute},
		{name: "deletions ignored twice", lasts: 10 * time.Minute, inject: fateOfAll(sim.Fate{IgnoreDeletes: 2})},
		{name: "deletions that end in ERROR twice", lasts: 15 * time.Minute, inject: fateOfAll(sim.Fate{FailDeletes: 2})},
		{name: "deletion stuck until forced", lasts: 30 * time.Minute, inject: fateOfAll(sim.Fate{StuckDeleting: true})},
		{
			name: "locked by the owner", lasts: 10 * time.Minute,
			inject: func(t *testing.T, w *world) {
				t.Helper()
				for _, s := range w.Snapshot().Servers {
					if err := w.Lock(s.ID, false); err != nil {
						t.Error(err)
					}
				}
			},
		},
		{
			name: "503 to each second deletion", lasts: 10 * time.Minute,
			inject: func(_ *testing.T, w *world) {
				w.Inject(sim.Rule{Operation: sim.OpServerDelete, Every: 2, Fault: sim.Refuse(http.StatusServiceUnavailable, "down")})
			},
		},
		{name: "deleted servers linger in listings", lasts: 10 * time.Minute, inject: fateOfAll(sim.Fate{LingersFor: 30 * time.Second})},
		{name: "listings lag 10 s", lasts: 5 * time.Minute, inject: func(_ *testing.T, w *world) { w.SetListingLag(10 * time.Second) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				s := w.scale(t, w.newGroup(t, nil), wanted, wanted)
				<-time.After(time.Minute)
				s.assertExact(t, wanted)
				close(s.stopped)
				s.done.Wait()
				if row.inject != nil {
					row.inject(t, w)
				}
				for _, inst := range s.Instances() {
					inst.Delete()
				}
				<-time.After(row.lasts)
				if left := w.Snapshot().Servers; len(left) != 0 {
					t.Errorf("servers left: %+v", left)
				}
				if c := s.Capacity(); c.Deleting != 0 || c.Running != 0 || c.Pending != 0 {
					t.Errorf("slots held: %+v", c)
				}
				if got := w.Count(sim.OpServerDelete); got > wanted*20 {
					t.Errorf("deletion storm: %d calls", got)
				}
				if t.Failed() {
					t.Log(w.log.String())
				}
				s.halt(t)
			})
		})
	}
}

func fateOfAll(fate sim.Fate) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		for _, s := range w.Snapshot().Servers {
			if err := w.SetFate(s.ID, fate); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestQuarantine: what cannot be deleted at all loses its slot, is watched,
// and is deleted once that is possible.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		if n, err := group.Increase(t.Context(), 1); n != 1 || err != nil {
			t.Fatalf("increase: got %d, %v", n, err)
		}
		<-time.After(10 * time.Second)
		name := names(states(t, group))[0]
		if err := w.SetFate(name, sim.Fate{AdminLock: true}); err != nil {
			t.Fatal(err)
		}
		if err := w.Lock(name, true); err != nil {
			t.Fatal(err)
		}
		if _, err := group.Decrease(t.Context(), []string{name}); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Minute)
		if got := states(t, group)[name]; got != provider.StateDeleting {
			t.Errorf("state while the deletion is refused: got %q, want deleting", got)
		}
		<-time.After(15 * time.Minute)
		if got := states(t, group); len(got) != 0 {
			t.Errorf("a quarantined server is reported: %v", got)
		}
		if w.log.lines("cannot be deleted", name) != 1 {
			t.Error("the quarantine was not logged once")
		}
		if err := w.Lock(name, false); err != nil {
			t.Fatal(err)
		}
		<-time.After(11 * time.Minute)
		states(t, group)
		if left := w.Snapshot().Servers; len(left) != 0 {
			t.Errorf("server left after its lock went: %+v", left)
		}
	})
}
