package plugin_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/gitlab-org/fleeting/taskscaler"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// TestTwoHundredJobs runs jobs as the runner does, through fleeting's real
// provisioner and taskscaler, one job per server, while one call in ten fails
// in one way or another: no job is lost and nothing is left.
func TestTwoHundredJobs(t *testing.T) {
	t.Parallel()
	const jobs, parallel = 200, 20
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{RandomSeed: 7})
		group := w.newGroup(t, nil)
		scaler, err := taskscaler.New(t.Context(), group,
			taskscaler.WithLogger(w.log.logger()), taskscaler.WithMaxInstances(parallel), taskscaler.WithMaxUseCount(1),
			taskscaler.WithCapacityPerInstance(1), taskscaler.WithInstanceGroupSettings(settings()), taskscaler.WithDeleteInstancesOnShutdown())
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range []sim.Fault{
			sim.Reset(), sim.CommitThenReset(), sim.CommitThenStatus(http.StatusServiceUnavailable),
			sim.CommitThenTruncate(), sim.RateLimited("1"),
		} {
			w.Inject(sim.Rule{Share: 0.02, Fault: fault})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Hour)
		defer cancel()
		var done atomic.Int64
		var workers sync.WaitGroup
		queue := make(chan string, jobs)
		for i := range jobs {
			queue <- fmt.Sprintf("job-%d", i)
		}
		close(queue)
		for range parallel {
			workers.Go(func() {
				for key := range queue {
					if err := w.job(ctx, scaler, key, 20*time.Second, func() {}); err != nil {
						t.Errorf("%s: %v", key, err)
						continue
					}
					done.Add(1)
				}
			})
		}
		workers.Wait()
		if done.Load() != jobs {
			t.Errorf("jobs done: got %d, want %d", done.Load(), jobs)
		}
		// A server that no job needs any more is idle for five minutes.
		<-time.After(30 * time.Minute)
		w.assertNothingLeft(t)
		scaler.Shutdown(t.Context())
		<-time.After(5 * time.Minute)
		t.Logf("%d jobs with %d servers and %d calls", done.Load(), w.Snapshot().ServersCreated, len(w.Calls()))
	})
}

// job acquires a server, tells when it has it, works on it for a while, and gives
// it back.
func (w *world) job(ctx context.Context, scaler taskscaler.Taskscaler, key string, lasts time.Duration, got func()) error {
	acquired, err := scaler.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer scaler.Release(key)
	got()
	working, cancel := acquired.WithContext(ctx)
	defer cancel()
	info, err := acquired.InstanceConnectInfo(working)
	if err != nil {
		return fmt.Errorf("connect info: %w", err)
	}
	select {
	case <-working.Done():
		return fmt.Errorf("cancelled: %w", context.Cause(working))
	case <-time.After(lasts):
	}
	server, ok := w.Snapshot().Server(acquired.InstanceID())
	if !ok || server.Status != "ACTIVE" || server.TaskState != "" || info.InternalAddr == "" {
		return fmt.Errorf("its server was not there to the end: %+v", server)
	}
	return nil
}

func (w *world) assertNothingLeft(t *testing.T) {
	t.Helper()
	left := w.Snapshot()
	if len(left.Servers)+len(left.Ports)+len(left.Volumes)+len(left.FloatingIPs) != 0 {
		t.Errorf("left: %d servers, %d ports, %d volumes, %d floating IPs", len(left.Servers), len(left.Ports), len(left.Volumes), len(left.FloatingIPs))
		for _, s := range left.Servers {
			t.Logf("%s %s %s", s.Name, s.Status, s.TaskState)
			for line := range strings.Lines(w.log.String()) {
				if strings.Contains(line, s.Name) {
					t.Log(line)
				}
			}
		}
	}
}
