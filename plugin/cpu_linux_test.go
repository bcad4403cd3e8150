package plugin_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// TestUpdateCostsATenth compares an Update over 1,000 servers with the
// library's reading of the same bytes alone, by the CPU time of the thread that
// does either: what else runs on the machine, in this process too, counts for
// neither. Caches that others empty do, so the best of each is taken.
func TestUpdateCostsATenth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sim.Options{})
	listing := w.thousand(t)
	group := w.startTB(t, canned{w.Transport(), listing})
	updateThousand(t, group)
	ours, theirs := time.Hour, time.Hour
	for range 5 {
		for range 10 {
			ours = min(ours, threadTime(t, func() { updateThousand(t, group) }))
		}
		theirs = min(theirs, threadTime(t, func() { extractServers(t, listing) }))
	}
	t.Logf("1,000 servers: update %v, ExtractServers %v of CPU (%.0f times)", ours, theirs, theirs.Seconds()/ours.Seconds())
	if ours*10 > theirs {
		t.Errorf("an update took %v of CPU, more than a tenth of %v", ours, theirs)
	}
}

// threadTime is the CPU time that a function takes on its own thread. Neither
// of the two compared starts goroutines for its work.
func threadTime(t *testing.T, run func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &usage); err != nil {
			t.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	before := used()
	run()
	return used() - before
}
