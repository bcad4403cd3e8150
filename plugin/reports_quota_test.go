package plugin_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// chase asks for what is missing every two seconds, as the runner does, and
// gives how many creates that took.
func (w *world) chase(t *testing.T, group provider.InstanceGroup, wanted int, lasts time.Duration) int {
	t.Helper()
	before := w.Count(sim.OpServerCreate)
	for end := time.Now().Add(lasts); time.Now().Before(end); <-time.After(2 * time.Second) {
		reported := states(t, group)
		if missing := wanted - count(reported, provider.StateRunning) - count(reported, provider.StateCreating); missing > 0 {
			if _, err := group.Increase(t.Context(), missing); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w.Count(sim.OpServerCreate) - before
}

// inHalfAnHour is how many trials fit into half an hour, three of them after 10, 20,
// 40 seconds and so on up to 10 minutes, beside the calls that were under way when
// the first eight had failed.
const inHalfAnHour = 8 + 10 + 3*8

// A hot loop on "Maximum number of ports exceeded", and provisioning that went
// on though the quota was used up: https://github.com/VertebrateResequencing/wr/issues/38
// and https://github.com/rancher/rancher/issues/45292
func TestReport21QuotaPausesScaleUps(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		limit func(*sim.Quota)
		text  string
		// Ten at first, and beyond the quota trials after 1, 2, 4, 8 and 10 minutes.
		// One of ports shows only when servers are built, so that others are under
		// way by then.
		most int
	}{
		"ports":     {func(q *sim.Quota) { q.Ports = 3 }, "Maximum number of ports exceeded", 30},
		"instances": {func(q *sim.Quota) { q.Instances = 3 }, "Quota exceeded for instances: Requested 1, but already used 3 of 3 instances", 15},
		"cores":     {func(q *sim.Quota) { q.Cores = 3 }, "Quota exceeded for cores: Requested 1, but already used 3 of 3 cores", 15},
		"RAM":       {func(q *sim.Quota) { q.RAM = 1536 }, "Quota exceeded for ram: Requested 512, but already used 1536 of 1536 ram", 15},
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{}, func(t *testing.T, w *world) {
				if err := w.SetQuota(sim.DefaultProject, row.limit); err != nil {
					t.Fatal(err)
				}
				group := w.start(t, nil)
				if got := w.chase(t, group, 10, 30*time.Minute); got > row.most {
					t.Errorf("creates in half an hour: got %d, want at most %d", got, row.most)
				}
				if got := count(states(t, group), provider.StateRunning); got != 3 {
					t.Errorf("running within the quota: got %d, want 3", got)
				}
				limited := w.log.lines("scale-up limited", row.text)
				if limited == 0 || limited > 8 {
					t.Errorf("lines with Nova's own words: got %d, want 1 to 8\n%s", limited, w.log)
				}
				if err := w.SetQuota(sim.DefaultProject, func(q *sim.Quota) { *q = sim.DefaultSeed().Projects[0].Quota }); err != nil {
					t.Fatal(err)
				}
				w.chase(t, group, 10, 15*time.Minute)
				if got := count(states(t, group), provider.StateRunning); got != 10 {
					t.Errorf("running when the quota was raised: got %d, want 10", got)
				}
			})
		})
	}
}

// A volume quota that is used up shows only as a server in ERROR, one of key
// pairs as a refusal: https://github.com/coreos/fedora-coreos-pipeline/issues/889
func TestReport11QuotaThatShowsLate(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		if err := w.SetQuota(sim.DefaultProject, func(q *sim.Quota) { q.Gigabytes = 25 }); err != nil {
			t.Fatal(err)
		}
		group := w.start(t, map[string]any{"server.volume_size": 10, "server.volume_type": "lab", "server.flavor": "m1.nodisk"})
		// Those accepted before the first came up in ERROR are no hot loop.
		if got := w.chase(t, group, 5, 30*time.Minute); got > inHalfAnHour {
			t.Errorf("creates in half an hour: got %d, want at most %d", got, inHalfAnHour)
		}
		if got := count(states(t, group), provider.StateRunning); got != 2 {
			t.Errorf("running within the quota: got %d, want 2", got)
		}
		if w.log.lines("scale-up limited", "VolumeSizeExceedsAvailableQuota", "quota is 25G") == 0 {
			t.Errorf("the log does not give Nova's fault:\n%s", w.log)
		}
		w.retired(t, group)
		if left := w.Snapshot().Volumes; len(left) != 0 {
			t.Errorf("volumes left: %+v", left)
		}
	})
}

func TestReport11KeyPairQuota(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		const text = "Quota exceeded, too many key pairs."
		w.Inject(sim.Rule{Operation: sim.OpServerCreate, Fault: sim.Refuse(http.StatusForbidden, text)})
		group := w.start(t, nil)
		if got := w.chase(t, group, 5, 30*time.Minute); got > inHalfAnHour {
			t.Errorf("creates in half an hour: got %d, want at most %d", got, inHalfAnHour)
		}
		if w.log.lines("scale-up limited", text, "req-") == 0 {
			t.Errorf("the log does not give Nova's words and the request:\n%s", w.log)
		}
	})
}

// Volumes were left when their server was deleted:
// https://github.com/jenkinsci/openstack-cloud-plugin/issues/102,
// https://github.com/rancher/rancher/issues/43244 and https://github.com/BiBiServ/bibigrid/issues/522
func TestReport10VolumesGoWithTheirServers(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		group := w.start(t, map[string]any{"server.volume_size": 10, "server.flavor": "m1.nodisk"})
		w.up(t, group, 4)
		if got := len(w.Snapshot().Volumes); got != 4 {
			t.Fatalf("volumes: got %d, want 4", got)
		}
		increase(t, group, 2, 2)
		<-time.After(600 * time.Millisecond) // their volumes exist, they do not run yet
		states(t, group)
		w.retired(t, group)
		if left := w.Snapshot().Volumes; len(left) != 0 {
			t.Errorf("volumes left: %+v", left)
		}
	})
}

// Key pairs leaked until their quota was used up, and a sweep raced with their
// creation: https://github.com/coreos/coreos-assembler/issues/3550,
// https://github.com/canonical/github-runner-operator/pull/296 and /pull/524
func TestReport12MakesNoKeyPairs(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		before := len(w.Snapshot().KeyPairs)
		group := w.start(t, map[string]any{"server.key_name": "fleeting"})
		w.up(t, group, 5)
		w.retired(t, group)
		if after := len(w.Snapshot().KeyPairs); after != before {
			t.Errorf("key pairs: got %d, before %d", after, before)
		}
		for _, call := range w.callsOf(sim.OpKeyPairs) {
			if call.Method != http.MethodGet {
				t.Errorf("%s %s", call.Method, call.URL)
			}
		}
	})
}

// Server groups have a limit of members, and a hard policy one of hosts:
// https://github.com/gardener/machine-controller-manager/issues/40 and
// https://github.com/kubernetes/kops/issues/10020
func TestReport27ServerGroupIsFull(t *testing.T) {
	t.Parallel()
	seed := sim.DefaultSeed()
	seed.ServerGroups = append(seed.ServerGroups, sim.ServerGroup{Name: "apart", Policy: "anti-affinity", Project: sim.DefaultProject})
	for name, row := range map[string]struct {
		group, text string
		fits        int
	}{
		"members": {"runners", "too many servers in group", 3},
		"hosts":   {"apart", "No valid host was found", 2},
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{Seed: &seed}, func(t *testing.T, w *world) {
				if err := w.SetQuota(sim.DefaultProject, func(q *sim.Quota) { q.ServerGroupMembers = 3 }); err != nil {
					t.Fatal(err)
				}
				group := w.start(t, map[string]any{"server.server_group": row.group})
				if got := w.chase(t, group, 6, 30*time.Minute); got > inHalfAnHour {
					t.Errorf("creates in half an hour: got %d, want at most %d", got, inHalfAnHour)
				}
				if got := count(states(t, group), provider.StateRunning); got != row.fits {
					t.Errorf("running: got %d, want %d", got, row.fits)
				}
				if w.log.lines("scale-up limited", row.text) == 0 {
					t.Errorf("the log does not say why:\n%s", w.log)
				}
				w.retired(t, group)
			})
		})
	}
}

// "No valid host" can only be recognised by its text:
// https://github.com/elasticluster/elasticluster/pull/577 and
// https://github.com/docker-archive-public/docker.machine/issues/1261
func TestReport28FaultsAreSaidInNovasWords(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{
		"no host":     sim.FaultNoValidHost,
		"retries":     sim.FaultRetries + "X.",
		"aborted":     "Build of instance X aborted: the hypervisor said no",
		"volume size": "Build of instance X aborted: VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota.",
		"late quota":  "Quota exceeded for instances: Requested 1, but already used 2 of 2 instances",
		"no address":  "Build of instance X aborted: No more IP addresses available on network Y.",
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{}, func(t *testing.T, w *world) {
				w.SetFates(func(int, sim.ServerInfo) sim.Fate { return sim.Fate{Fault: fault} })
				group := w.start(t, nil)
				if got := w.chase(t, group, 5, 30*time.Minute); got > inHalfAnHour {
					t.Errorf("creates in half an hour: got %d, want at most %d", got, inHalfAnHour)
				}
				said := w.log.lines("scale-up", strings.TrimSpace(fault))
				if said == 0 || said > 12 {
					t.Errorf("lines with the fault: got %d, want 1 to 12\n%s", said, w.log)
				}
				w.retired(t, group)
			})
		})
	}
}
