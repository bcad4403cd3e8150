package plugin_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// fill starts servers as the runner's loop does, and returns how long that took.
func (w *world) fill(t *testing.T, group *plugin.InstanceGroup, n int) time.Duration {
	t.Helper()
	began := time.Now()
	increase(t, group, n, n)
	for count(states(t, group), provider.StateRunning) < n {
		<-time.After(2 * time.Second)
	}
	return time.Since(began)
}

// TestThousandServersDown: a thousand servers free their slots about as fast as
// they came up.
func TestThousandServersDown(t *testing.T) {
	t.Parallel()
	const servers = 1000
	for name, change := range map[string]map[string]any{"by default": nil, "100 creations at a time": {"max_parallel_creates": 100}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				group := w.start(t, change)
				w.Inject(sim.Rule{Fault: sim.Delay(time.Second)})
				up := w.fill(t, group, servers)
				began := time.Now()
				if _, err := group.Decrease(t.Context(), names(states(t, group))); err != nil {
					t.Fatal(err)
				}
				for longest := time.Duration(0); ; <-time.After(2 * time.Second) {
					asked := time.Now()
					held := len(states(t, group))
					longest = max(longest, time.Since(asked))
					if held > 0 {
						continue
					}
					if longest > 5*time.Second {
						t.Errorf("an update took %v", longest)
					}
					break
				}
				ratio := time.Since(began).Seconds() / up.Seconds()
				measured(t, "1,000 servers down at 1 s a call, "+name, "time, of going up", "<= 1.5", ratio, ratio <= 1.5)
				w.assertNothingLeft(t)
			})
		})
	}
}

// TestThousandServersAtShutdown: a runner that is to delete its servers and waits
// a minute leaves none, or each is named.
func TestThousandServersAtShutdown(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		servers int
		call    time.Duration
	}{"1,000 at 1 s a call": {1000, time.Second}, "300 at 2 s a call": {300, 2 * time.Second}, "1,000 at 20 s a call": {1000, 20 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sim.Options{})
				transport := &killable{RoundTripper: w.Transport()}
				group := w.groupOver(t, transport, nil)
				provisioner, err := fleeting.Init(t.Context(), w.log.logger(), group, fleeting.WithMaxSize(row.servers), fleeting.WithInstanceGroupSettings(settings()))
				if err != nil {
					t.Fatal(err)
				}
				provisioner.Request(row.servers)
				for provisioner.Capacity().Running < row.servers {
					<-time.After(2 * time.Second)
				}
				w.Inject(sim.Rule{Fault: sim.Delay(row.call)})
				for _, inst := range provisioner.Instances() {
					inst.Delete()
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var ended sync.WaitGroup
				ended.Go(func() { provisioner.Shutdown(ctx) })
				<-ctx.Done()
				transport.dead.Store(true) // the runner kills the plugin
				left, unnamed := 0, 0
				for _, s := range w.Snapshot().Servers {
					if s.TaskState == "deleting" {
						continue
					}
					left++
					if !w.named(s.Name) {
						unnamed++
					}
				}
				measured(t, "shutdown of "+name+", host waits 60 s", "left and not named", "0", float64(unnamed), unnamed == 0)
				measured(t, "shutdown of "+name+", host waits 60 s", "left", "", float64(left), true)
				ended.Wait()
				<-time.After(5 * time.Minute)
			})
		})
	}
}

// named reports whether the log names a server that was not deleted.
func (w *world) named(server string) bool {
	for line := range strings.Lines(w.log.String()) {
		if (strings.Contains(line, "still to be deleted") || strings.Contains(line, "were not deleted")) && strings.Contains(line, server) {
			return true
		}
	}
	return false
}

// TestServersASecond: with one job a server, the call budget is what bounds a
// group, and two calls are what a server costs.
func TestServersASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lasts = 2 * time.Minute
		w := newWorld(t, sim.Options{})
		r := w.runner(t, w.newGroup(t, nil), 600)
		w.Inject(sim.Rule{Fault: sim.Delay(100 * time.Millisecond)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var done atomic.Int64
		var workers sync.WaitGroup
		stop := make(chan struct{})
		for worker := range 400 {
			workers.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					if err := r.job(ctx, r, fmt.Sprint(worker, "-", n), time.Second, func() {}); err != nil {
						t.Error(err)
					}
					done.Add(1)
				}
			})
		}
		<-time.After(time.Minute) // until the burst is used up
		before := done.Load()
		<-time.After(lasts)
		rate := float64(done.Load()-before) / lasts.Seconds()
		close(stop)
		workers.Wait()
		<-time.After(30 * time.Minute)
		w.assertNothingLeft(t)
		r.Shutdown(t.Context())
		<-time.After(5 * time.Minute)
		measured(t, "one job a server, 50 calls a second", "servers a second", ">= 24", rate, rate >= 24)
		if w.log.lines("calls wait for the plugin's own limit") == 0 {
			t.Error("the log does not say that the limit is the bound")
		}
	})
}

// TestFiftyGroupsBehindOneLimit: groups that share a limit of calls do not spend
// it on refusals and listings.
func TestFiftyGroupsBehindOneLimit(t *testing.T) {
	t.Parallel()
	const groups, each, limit = 50, 4, 20
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		var all []*plugin.InstanceGroup
		for n := range groups {
			group := w.start(t, map[string]any{"name": fmt.Sprintf("runner-%d", n)})
			states(t, group)
			all = append(all, group)
		}
		w.become(t, weather{fmt.Sprintf("rate-limit,calls=%d,burst=20,retry-after=1,match=compute:*", limit)})
		began := time.Now()
		var hosts sync.WaitGroup
		var up atomic.Int64
		for _, group := range all {
			hosts.Go(func() {
				increase(t, group, each, each)
				for running := 0; running < each; <-time.After(2 * time.Second) {
					reported, err := update(t, group)
					if err != nil {
						continue
					}
					now := count(reported, provider.StateRunning)
					up.Add(int64(now - running))
					running = now
				}
			})
		}
		for w.Snapshot().ServersCreated < groups*each {
			<-time.After(100 * time.Millisecond)
		}
		made := time.Since(began)
		hosts.Wait()
		reported := time.Since(began)
		permits := float64(groups*each) / limit
		t.Logf("200 servers made in %v, reported in %v, %d calls", made, reported, len(w.Calls()))
		ratio := made.Seconds() / permits
		measured(t, "50 groups behind 20 calls a second", "time, of what the limit permits", "<= 1.3", ratio, ratio <= 1.3)
	})
}

// TestWeatherLogins: a password that is refused is not tried again and again,
// which locks the account of every group that uses it.
func TestWeatherLogins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		group := w.start(t, nil)
		w.up(t, group, 3)
		if err := w.SetPassword(sim.DefaultUser, "another"); err != nil {
			t.Fatal(err)
		}
		w.RevokeTokens()
		before := w.Count(sim.OpTokenCreate)
		for began := time.Now(); time.Since(began) < time.Hour; <-time.After(2 * time.Second) {
			if _, err := update(t, group); err == nil {
				t.Fatal("an update without a login")
			}
			if _, err := group.Increase(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		logins := float64(w.Count(sim.OpTokenCreate) - before)
		measured(t, "refused password", "logins an hour", "<= 12", logins, logins <= 12)
		if err := w.SetPassword(sim.DefaultUser, sim.DefaultPassword); err != nil {
			t.Fatal(err)
		}
		w.writeClouds(t) // saved again, which is a reason to try
		<-time.After(2 * time.Second)
		if got := count(states(t, group), provider.StateRunning); got < 3 {
			t.Errorf("running after the file was saved: got %d, want 3", got)
		}
	})
}
