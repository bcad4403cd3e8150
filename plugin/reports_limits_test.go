package plugin_test

import (
	"net/http"
	"testing"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// 429 was not retried, and Retry-After not read; OVH limits every API:
// https://github.com/terraform-provider-openstack/terraform-provider-openstack/issues/1365 and /issues/1156,
// https://github.com/ovh/docs/pull/4829
func TestReport20RateLimitsAreWaitedFor(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status      int
		seconds     string // Retry-After
		date        time.Duration
		least, most time.Duration
	}{
		"429 in seconds":     {http.StatusTooManyRequests, "7", 0, 14 * time.Second, 22 * time.Second},
		"429 as a date":      {http.StatusTooManyRequests, "", 9 * time.Second, 8 * time.Second, 28 * time.Second},
		"429 without":        {http.StatusTooManyRequests, "", 0, 2 * time.Second, 8 * time.Second},
		"429 for very long":  {http.StatusTooManyRequests, "3600", 0, 45 * time.Second, 125 * time.Second},
		"413 in seconds":     {http.StatusRequestEntityTooLarge, "7", 0, 14 * time.Second, 22 * time.Second},
		"498 in seconds":     {498, "7", 0, 14 * time.Second, 22 * time.Second},
		"503 in seconds":     {http.StatusServiceUnavailable, "7", 0, 14 * time.Second, 22 * time.Second},
		"502 without":        {http.StatusBadGateway, "", 0, 3 * time.Second, 5 * time.Second},
		"504 without":        {http.StatusGatewayTimeout, "", 0, 3 * time.Second, 5 * time.Second},
		"no answer, a reset": {0, "", 0, 3 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{}, func(t *testing.T, w *world) {
				group := w.start(t, nil)
				w.up(t, group, 1)
				fault := sim.Fault{Status: row.status, RetryAfter: row.seconds}
				if row.date > 0 {
					fault.RetryAfter = time.Now().Add(row.date).UTC().Format(http.TimeFormat)
				}
				if row.status == 0 {
					fault = sim.Reset()
				}
				w.Inject(sim.Rule{Operation: sim.OpServerDetail, Times: 2, Fault: fault})
				begin := time.Now()
				for listed := false; !listed; <-time.After(2 * time.Second) {
					// Longer than an Update may take, it ends with an error in time. Until
					// then what was known is reported.
					reported, err := update(t, group)
					if row.seconds != "3600" && (err != nil || count(reported, provider.StateRunning) != 1) {
						t.Errorf("update: %v, %v", reported, err)
					}
					last := w.callsOf(sim.OpServerDetail)
					listed = last[len(last)-1].Status == http.StatusOK
				}
				took := time.Since(begin) - 2*time.Second
				if took < row.least || took > row.most {
					t.Errorf("it took %s, want %s to %s", took, row.least, row.most)
				}
			})
		})
	}
}

// Old Nova allowed ten creates a minute: https://github.com/cloudfoundry/bosh/issues/597
func TestReport20CreatesUnderARateLimit(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		const wanted = 12
		group := w.start(t, nil)
		w.Inject(sim.Rule{Operation: sim.OpServerCreate, Every: 2, Fault: sim.RateLimited("6")})
		increase(t, group, wanted, wanted)
		<-time.After(15 * time.Minute)
		w.chase(t, group, wanted, time.Minute)
		if got := count(states(t, group), provider.StateRunning); got != wanted || w.Snapshot().ServersCreated != wanted {
			t.Errorf("running: got %d of %d made, want %d", got, w.Snapshot().ServersCreated, wanted)
		}
	})
}

// Too many creates at once hurt some clouds, one by one is too slow for
// others: https://github.com/jenkinsci/openstack-cloud-plugin/issues/56, /issues/151 and /issues/291
func TestReport31CreatesInParallelWithinBounds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change map[string]any
		want   int
	}{
		"by default": {nil, 20},
		"set to 3":   {map[string]any{"max_parallel_creates": 3}, 3},
		"one by one": {map[string]any{"max_parallel_creates": 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{}, func(t *testing.T, w *world) {
				creates := &gauge{next: w.Transport(), want: isCreate}
				group := w.startThrough(t, creates, row.change)
				w.Inject(sim.Rule{Operation: sim.OpServerCreate, Fault: sim.Delay(300 * time.Millisecond)})
				increase(t, group, 50, 50)
				<-time.After(time.Minute)
				if got := count(states(t, group), provider.StateRunning); got != 50 || creates.most != row.want {
					t.Errorf("%d running, %d creates at one time; want 50 and %d", got, creates.most, row.want)
				}
			})
		})
	}
}

// The same reports: fewer at once after the cloud had trouble with ten.
func TestReport31CreatesFewerAfterTrouble(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change map[string]any
		fault  sim.Fault
	}{
		"told to slow down":            {nil, sim.RateLimited("1")},
		"told to slow down, set to 10": {map[string]any{"max_parallel_creates": 10}, sim.RateLimited("1")},
		"timeouts of a gateway":        {nil, sim.CommitThenStatus(http.StatusGatewayTimeout)},
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{}, func(t *testing.T, w *world) {
				creates := &gauge{next: w.Transport(), want: isCreate}
				group := w.startThrough(t, creates, row.change)
				w.Inject(sim.Rule{Operation: sim.OpServerCreate, Fault: sim.Delay(300 * time.Millisecond)})
				w.Inject(sim.Rule{Operation: sim.OpServerCreate, Times: 10, Fault: row.fault})
				increase(t, group, 10, 10)
				<-time.After(500 * time.Millisecond)
				first := creates.most
				creates.most = 0
				if row.fault.Commit {
					increase(t, group, 10, 10)
				}
				<-time.After(time.Minute)
				// Five are sent; each that is taken on frees its place and adds one.
				if got := count(states(t, group), provider.StateRunning); got < 10 || first != 10 || creates.most == 0 || creates.most > 7 {
					t.Errorf("%d running, %d creates at one time, then %d; want 10 or 20, 10, and 1 to 7", got, first, creates.most)
				}
			})
		})
	}
}

// Clouds where every call about floating IPs is 403, and floating IPs that were
// not the plugin's to release: https://github.com/jenkinsci/openstack-cloud-plugin/issues/128, /issues/147
// and https://github.com/grycap/im/issues/944
func TestReport08NoCallsAboutFloatingIPs(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		group := w.start(t, nil)
		w.up(t, group, 2)
		somebody := w.person(t)
		port := w.Snapshot().Ports[0].ID
		networks, _ := somebody.call(http.MethodGet, "/network/v2.0/networks?name=public", nil)
		somebody.call(http.MethodPost, "/network/v2.0/floatingips", map[string]any{"floatingip": map[string]any{
			"floating_network_id": text(networks, "networks", "id"), "port_id": port,
		}})
		w.Inject(sim.Rule{Operation: sim.OpFloatingIPs, Fault: sim.Refuse(http.StatusForbidden, "not allowed")})
		if got := count(states(t, group), provider.StateRunning); got != 2 {
			t.Errorf("running: got %d, want 2", got)
		}
		w.retired(t, group)
		if got := w.Snapshot().FloatingIPs; len(got) != 1 || got[0].Port != "" {
			t.Errorf("floating IPs: %+v, want the one that somebody made, free again", got)
		}
		if got := w.Count(sim.OpFloatingIPs); got != 1 {
			t.Errorf("calls about floating IPs: got %d, want somebody's one", got)
		}
	})
}
