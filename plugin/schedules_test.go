package plugin_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// schedule is a random sequence of faults, each of which holds for a while.
type schedule struct {
	seed   uint64
	random *rand.Rand
	after  []time.Duration
	faults []string
}

// newSchedule draws what happens in a quarter of an hour. None of it changes what a
// process may know for certain: a server that is made is listed within the time in
// which it is looked for, and a deletion that is repeated takes effect some time.
func newSchedule(seed uint64) schedule {
	s := schedule{seed: seed, random: rand.New(rand.NewPCG(seed, 7))}
	for range 1 + s.random.IntN(6) {
		s.after = append(s.after, time.Duration(s.random.IntN(600))*time.Second)
		s.faults = append(s.faults, s.fault())
	}
	return s
}

// fault draws one fault and how long it holds.
func (s schedule) fault() string {
	share, seconds := 1+s.random.IntN(60), 1+s.random.IntN(20)
	one := func(of ...string) string { return of[s.random.IntN(len(of))] }
	calls := one("compute:*", "compute:server.create", "compute:server.delete", "compute:server.detail", "compute:server.show", "compute:server*", "*")
	kind := one(
		fmt.Sprintf("error:%d%%,status=%s,match=%s", share, one("500", "502", "503", "504", "429"), calls),
		fmt.Sprintf("error:%d%%,status=429,retry-after=%d,match=%s", share, seconds, calls),
		fmt.Sprintf("gateway:%d%%,status=%s,match=%s", share, one("404", "502", "503", "504"), calls),
		fmt.Sprintf("reset:%d%%,match=%s", share, calls),
		fmt.Sprintf("hang:%d%%,match=%s", share, calls),
		fmt.Sprintf("lost:%d%%,answer=%s,match=%s", share, one("reset", "hang", "truncated", "502", "503", "504"), calls),
		fmt.Sprintf("delay:%d%%,by=%ds,match=%s", share, seconds, calls),
		fmt.Sprintf("rate-limit,calls=%d,retry-after=1,match=%s", seconds, calls),
		fmt.Sprintf("build-error:%d%%", share), fmt.Sprintf("no-valid-host:%d%%", share), fmt.Sprintf("slow-build:%d%%,time=%ds", share, 5*seconds),
		fmt.Sprintf("stuck-deleting:%d%%", share), fmt.Sprintf("delete-ignored:%d%%,deletions=%d", share, 1+seconds/4),
		fmt.Sprintf("delete-error:%d%%", share), fmt.Sprintf("lingering:%d%%,by=%ds", share, seconds), fmt.Sprintf("bare:%d%%", share),
		fmt.Sprintf("quota,instances=%d", seconds/3), fmt.Sprintf("quota,ports=%d", seconds/3), "soft-delete,reclaim=20m", "cell-down",
		fmt.Sprintf("clock,by=%dm", seconds), fmt.Sprintf("unlisted:%d%%,by=%ds", share, 1+seconds/3), fmt.Sprintf("listing-lag,by=%ds", 1+seconds/3),
	)
	return fmt.Sprintf("%s,for=%ds", kind, 15*seconds)
}

// String is what a failing test prints.
func (s schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "schedule %d:", s.seed)
	for i, fault := range s.faults {
		fmt.Fprintf(&b, "\n\tafter %v: --fault %s", s.after[i], fault)
	}
	return b.String()
}

// TestRandomSchedules takes a group through random faults. Every second one keeps
// its servers: in the end there are exactly the wanted ones, and no slot is lost.
// The others run jobs: none is lost, and no server is left. There are never more
// servers than allowed.
func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	schedules, shards := 24, 4
	if *thorough {
		schedules = 1000
	}
	var failed atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for shard := range shards {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				for n := shard; n < schedules; n += shards {
					if !t.Run(fmt.Sprint(n+1), newSchedule(uint64(n)+1).test) {
						failed.Add(1)
					}
				}
			})
		}
	})
	lost := float64(failed.Load())
	measured(t, fmt.Sprintf("%d random schedules of faults", schedules), "that lost, doubled or left something", "0", lost, lost == 0)
}

func (s schedule) test(t *testing.T) {
	soon := map[string]any{"build_timeout": "5m", "delete_timeout": "3m"}
	defer func() {
		if t.Failed() {
			t.Log(s)
		}
	}()
	var rules []sim.Rule
	for _, text := range s.faults {
		rule, err := sim.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	begin := func(w *world) {
		for i, rule := range rules {
			time.AfterFunc(s.after[i], func() { w.Inject(rule) })
		}
	}
	if s.seed%2 == 0 {
		work := workload{jobs: 60, parallel: 6, most: 6, job: time.Minute, config: soon}
		if d := work.run(t, s.seed, weather{begin}); d.most > work.most {
			t.Errorf("%d usable servers at one time, %d allowed: %s", d.most, work.most, d.crowd)
		}
		return
	}
	synctest.Test(t, func(t *testing.T) {
		const wanted = 6
		w := newWorld(t, sim.Options{RandomSeed: s.seed})
		scaler := w.scale(t, w.newGroup(t, soon), wanted, wanted)
		begin(w)
		// Longer than any fault, and than everything that the plugin waits for.
		<-time.After(45 * time.Minute)
		scaler.assertExact(t, wanted)
		scaler.stop(t)
	})
}
