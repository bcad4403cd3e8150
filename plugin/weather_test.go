package plugin_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"
	"gitlab.com/gitlab-org/fleeting/taskscaler"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// thorough runs every seed of the weather, and all schedules: make bench does.
var thorough = flag.Bool("weather.thorough", false, "run all seeds of the weather and all random schedules")

// measured hands a figure to make bench, which makes a table of them.
func measured(t *testing.T, row, figure, goal string, value float64, met bool) {
	t.Helper()
	t.Attr("bench", strings.Join([]string{row, figure, goal, fmt.Sprintf("%.2f", value), fmt.Sprint(met)}, "|"))
	if !met {
		t.Errorf("%s: %s %.2f, goal %s", row, figure, value, goal)
	}
}

// workload is jobs that a runner runs, each on a server of its own.
type workload struct {
	jobs, parallel, most int
	job                  time.Duration
	config               map[string]any
}

// twenty are the jobs of the weather table.
var twenty = workload{jobs: 20, parallel: 5, most: 5, job: 2 * time.Second}

// day is what running a workload took.
type day struct {
	took    time.Duration
	calls   []string        // when each was made, and what came of it
	waits   []time.Duration // of the jobs for their servers, served in turn
	creates int             // sent
	up      int             // servers that came up
	refused int             // creations, for a quota
	most    int             // usable servers at one time
	crowd   string          // these
	longest time.Duration   // wait
}

// runner is GitLab's task scaler over a plugin over a simulated cloud.
type runner struct {
	*world
	taskscaler.Taskscaler
}

func (w *world) runner(t *testing.T, group provider.InstanceGroup, most int) *runner {
	t.Helper()
	scaler, err := taskscaler.New(t.Context(), group,
		taskscaler.WithLogger(w.log.logger()), taskscaler.WithMaxInstances(most), taskscaler.WithMaxUseCount(1),
		taskscaler.WithCapacityPerInstance(1), taskscaler.WithInstanceGroupSettings(settings()), taskscaler.WithDeleteInstancesOnShutdown())
	if err != nil {
		t.Fatal(err)
	}
	return &runner{w, scaler}
}

// weather changes what a cloud is like: a text of the simulator's faults, a rule,
// or a function.
type weather []any

func (w *world) become(t *testing.T, weather weather) {
	t.Helper()
	for _, item := range weather {
		switch item := item.(type) {
		case string:
			rule, err := sim.ParseRule(item)
			if err != nil {
				t.Fatal(err)
			}
			w.Inject(rule)
		case sim.Rule:
			w.Inject(item)
		case func(*world):
			item(w)
		}
	}
}

// run runs the jobs, in a bubble: nothing is lost, doubled or left.
func (l workload) run(t *testing.T, seed uint64, weather weather) (d day) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{RandomSeed: seed})
		r := w.runner(t, w.newGroup(t, l.config), l.most)
		w.become(t, weather)
		stop := r.watch(&d)
		began := time.Now()
		l.work(t, r, &d)
		d.took = time.Since(began)
		stop()
		d.count(w)
		// What no job needs any more is idle for five minutes.
		<-time.After(30 * time.Minute)
		w.assertNothingLeft(t)
		r.Shutdown(t.Context())
		<-time.After(5 * time.Minute)
		if t.Failed() {
			t.Logf("seed %d: %v", seed, d)
		}
	})
	d.longest = slices.Max(append(d.waits, 0))
	return d
}

// watch counts usable servers until the function that it returns is called.
func (r *runner) watch(d *day) (stop func()) {
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			if servers := r.usable(); len(servers) > d.most {
				d.most, d.crowd = len(servers), fmt.Sprint(time.Now().Format(time.TimeOnly))
				for _, s := range servers {
					d.crowd += " " + s.Name + " " + s.Status
				}
			}
			select {
			case <-done:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	})
	return func() {
		close(done)
		watching.Wait()
	}
}

// work runs the jobs in as many workers as may run side by side.
func (l workload) work(t *testing.T, r *runner, d *day) {
	t.Helper()
	var (
		workers sync.WaitGroup
		next    atomic.Int64
		mu      sync.Mutex
		queue   []time.Time // since when jobs wait for a server
	)
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Hour)
	defer cancel()
	for worker := range l.parallel {
		workers.Go(func() {
			// Not in one moment with each other or the scaler, or chance decides.
			<-time.After(time.Duration(worker+1) * 1700 * time.Microsecond)
			for n := next.Add(1); n <= int64(l.jobs); n = next.Add(1) {
				mu.Lock()
				queue = append(queue, time.Now())
				mu.Unlock()
				err := r.job(ctx, r, fmt.Sprint(n), l.job, func() {
					// Whichever worker gets a server, it is for the job that waits longest.
					mu.Lock()
					defer mu.Unlock()
					d.waits, queue = append(d.waits, time.Since(queue[0])), queue[1:]
				})
				if err != nil {
					t.Errorf("job %d: %v", n, err)
				}
			}
		})
	}
	workers.Wait()
}

// String leaves the calls out.
func (d day) String() string {
	return fmt.Sprintf("took %v, waits %v, %d creations sent, %d servers up, %d at one time", d.took, d.waits, d.creates, d.up, d.most)
}

func (d *day) count(w *world) {
	d.up = w.log.lines("server is up")
	for _, call := range w.Calls() {
		d.calls = append(d.calls, fmt.Sprint(call.Time.Format("04:05.000000000 "), call.Method, " ", call.URL, " ", call.Status))
		if call.Operation == sim.OpServerCreate {
			d.creates++
			if call.Status == http.StatusForbidden {
				d.refused++
			}
		}
	}
}

// days runs a workload with several seeds.
func (l workload) days(t *testing.T, weather weather) []day {
	t.Helper()
	seeds := 3
	if *thorough {
		seeds = 25
	}
	var all []day
	for seed := range seeds {
		all = append(all, l.run(t, uint64(seed)+1, weather))
	}
	return all
}

// median of a figure of several days.
func median[T cmp.Ordered](days []day, figure func(day) T) T {
	var all []T
	for _, d := range days {
		all = append(all, figure(d))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func tookOf(d day) time.Duration { return d.took }

// TestWeather runs the same twenty jobs in all weathers, through GitLab's own
// task scaler and provisioner, on a clock that jumps. Each ratio is to the run
// without faults.
func TestWeather(t *testing.T) {
	t.Parallel()
	const create = ",match=compute:server.create"
	refused := sim.Rule{Operation: sim.OpServerCreate, Share: 0.1, Fault: sim.Refused()}
	calm := median(twenty.days(t, nil), tookOf)
	measured(t, "no faults", "seconds", "", calm.Seconds(), true)
	for _, row := range []struct {
		name    string
		weather weather
		goal    float64
		wait    time.Duration // 0 for any
	}{
		{"10 % answer 503, in Nova's words", weather{"error:10%" + create}, 1.5, 20 * time.Second},
		{"10 % answer 503, by a balancer without a server", weather{"gateway:10%" + create}, 1.5, 20 * time.Second},
		{"10 % of connections refused", weather{refused}, 1.5, 20 * time.Second},
		{"10 % reset before anything was made", weather{"reset:10%" + create}, 1.5, 20 * time.Second},
		{"10 % answer 429", weather{"error:10%,status=429,retry-after=1" + create}, 1.5, 20 * time.Second},
		{"10 % of answers lost, half committed", weather{"lost:5%" + create, "reset:5%" + create}, 2, 0},
		{"10 % never answered, half committed", weather{"lost:5%,answer=hang" + create, "hang:5%" + create}, 2, 0},
		{"15 % born in ERROR", weather{"build-error:15%"}, 1.5, 0},
		{"30 % born in ERROR", weather{"build-error:30%"}, 2, 0},
		{"15 % find no valid host", weather{"no-valid-host:15%"}, 1.5, 0},
		{"30 % find no valid host", weather{"no-valid-host:30%"}, 2, 0},
		{"one of two hosts always fails builds", weather{"build-error:50%"}, 3, 0},
		{"all at once, 10 % of everything", everything(create), 3, 0},
		{"all at once, 3 % of every call", anyCall(), 3, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			days := twenty.days(t, row.weather)
			ratio := median(days, tookOf).Seconds() / calm.Seconds()
			measured(t, row.name, "time, ratio", fmt.Sprintf("<= %.1f", row.goal), ratio, ratio <= row.goal)
			costs(t, row.name, days)
			if row.wait > 0 {
				wait := slices.MaxFunc(days, func(a, b day) int { return cmp.Compare(a.longest, b.longest) }).longest
				measured(t, row.name, "longest wait, s", fmt.Sprintf("<= %.0f", row.wait.Seconds()), wait.Seconds(), wait <= row.wait)
			}
			for _, d := range days {
				if d.most > twenty.most {
					t.Errorf("%d usable servers at one time, %d allowed", d.most, twenty.most)
				}
			}
		})
	}
}

// costs measures how many creations were sent for each server that came up.
func costs(t *testing.T, row string, days []day) {
	t.Helper()
	sent := median(days, func(d day) float64 { return float64(d.creates) / float64(d.up) })
	measured(t, row, "creations per server", "<= 3", sent, sent <= 3)
}

// everything is a cloud where a tenth of everything that can happen to a server
// happens.
func everything(create string) weather {
	return weather{
		"error:2%" + create, "gateway:2%" + create, "reset:2%" + create, "lost:2%" + create, "lost:2%,answer=truncated" + create,
		"build-error:5%", "no-valid-host:5%", "slow-build:10%,time=10s", "unlisted:10%,by=5s", "not-found:10%,by=5s",
		"delete-error:5%", "delete-ignored:5%,deletions=1", "power-off:10%,uptime=1m", "lingering:10%,by=5s", "bare:10%",
		"error:10%,match=compute:server.delete", "error:10%,match=compute:server.list",
	}
}

// anyCall is a cloud where each call can go wrong in each way.
func anyCall() weather {
	return weather{"error:3%", "gateway:3%", "reset:3%", "lost:3%", "lost:3%,answer=truncated", "lost:3%,answer=504", "build-error:10%", "delete-error:10%"}
}

// TestWeatherQuota: with a quota of two, a group that wants five does what two
// servers can do.
func TestWeatherQuota(t *testing.T) {
	t.Parallel()
	work := workload{jobs: 120, parallel: 5, most: 5, job: 2 * time.Second}
	two := work
	two.most = 2
	can := median(two.days(t, nil), tookOf)
	for name, limit := range map[string]string{"servers": "instances=2", "cores": "cores=2", "RAM": "ram=1024", "ports": "ports=2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			days := work.days(t, weather{"quota," + limit})
			share := can.Seconds() / median(days, tookOf).Seconds()
			row := "quota of two " + name + ", five wanted"
			measured(t, row, "jobs, of what two can do", ">= 0.9", share, share >= 0.9)
			minute := median(days, func(d day) float64 { return float64(d.creates-d.up) / d.took.Minutes() })
			costs(t, row, days)
			measured(t, row, "creations in vain a minute", "<= 2", minute, minute <= 2)
		})
	}
}

// TestWeatherSoftDelete: a cloud that keeps deleted servers does as much work as
// one that does not.
func TestWeatherSoftDelete(t *testing.T) {
	t.Parallel()
	work := workload{jobs: 60, parallel: 3, most: 3, job: time.Minute}
	calm := median(work.days(t, nil), tookOf)
	days := work.days(t, weather{"soft-delete,reclaim=1h"})
	share := calm.Seconds() / median(days, tookOf).Seconds()
	costs(t, "soft delete", days)
	measured(t, "soft delete", "jobs, of what there are without", ">= 0.95", share, share >= 0.95)
}

// TestWeatherOutage: when a cloud comes back after ten minutes, the first new
// server is up soon.
func TestWeatherOutage(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]sim.Fault{
		"connections refused": sim.Refused(), "connections reset": sim.Reset(), "503 of a balancer": sim.Gateway(http.StatusServiceUnavailable),
		"502 of a balancer": sim.Gateway(http.StatusBadGateway), "no answers": sim.Hang(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var worst time.Duration
			for seed := range uint64(3) {
				worst = max(worst, outage(t, seed+1, down))
			}
			measured(t, "cloud down for 10 min, then up: "+name, "s until a new server", "<= 20", worst.Seconds(), worst <= 20*time.Second)
		})
	}
}

// outage returns how long after a cloud has come back a new server is up, while
// jobs wait for it.
func outage(t *testing.T, seed uint64, down sim.Fault) (first time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{RandomSeed: seed})
		r := w.runner(t, w.newGroup(t, nil), 5)
		work := workload{jobs: 20, parallel: 5, most: 5, job: 30 * time.Second}
		var d day
		var jobs sync.WaitGroup
		jobs.Go(func() { work.work(t, r, &d) })
		<-time.After(20 * time.Second)
		up := w.Inject(sim.Rule{Fault: down})
		<-time.After(10 * time.Minute)
		up()
		before, back := w.log.lines("server is up"), time.Now()
		for w.log.lines("server is up") == before {
			<-time.After(100 * time.Millisecond)
		}
		first = time.Since(back)
		jobs.Wait()
		<-time.After(30 * time.Minute)
		w.assertNothingLeft(t)
		r.Shutdown(t.Context())
		<-time.After(5 * time.Minute)
	})
	return first
}
