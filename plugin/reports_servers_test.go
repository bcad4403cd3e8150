package plugin_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// Each retry of a create that was answered 503 had made a VM:
// https://github.com/cloudbase/garm/issues/79
func TestReport01CreateAnswered503HadMadeAServer(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		createsLoseTheirAnswers(t, w, sim.CommitThenStatus(http.StatusServiceUnavailable))
	})
}

// POST /servers is answered 504 by the gateway:
// https://github.com/openstack-k8s-operators/nova-operator/issues/299
func TestReport02CreateLosesItsAnswer(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]sim.Fault{
		"504":           sim.CommitThenStatus(http.StatusGatewayTimeout),
		"reset":         sim.CommitThenReset(),
		"truncated 202": sim.CommitThenTruncate(),
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{}, func(t *testing.T, w *world) { createsLoseTheirAnswers(t, w, fault) })
		})
	}
}

func createsLoseTheirAnswers(t *testing.T, w *world, fault sim.Fault) {
	t.Helper()
	const wanted = 20
	group := w.start(t, nil)
	w.Inject(sim.Rule{Operation: sim.OpServerCreate, Fault: fault})
	increase(t, group, wanted, wanted)
	<-time.After(time.Minute)
	if got := count(states(t, group), provider.StateRunning); got != wanted {
		t.Errorf("running: got %d, want %d", got, wanted)
	}
	if servers, posts := w.Snapshot().ServersCreated, w.Count(sim.OpServerCreate); servers != wanted || posts != wanted {
		t.Errorf("%d servers made by %d calls, want %d of each", servers, posts, wanted)
	}
}

// A machine that was not up in time was leaked:
// https://github.com/jenkinsci/openstack-cloud-plugin/issues/60 and /issues/52
func TestReport09NotUpInTimeIsDeletedOnce(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		w.SetFates(func(n int, _ sim.ServerInfo) sim.Fate { return sim.Fate{StuckBuilding: n == 1} })
		group := w.start(t, map[string]any{"build_timeout": "2m"})
		increase(t, group, 1, 1)
		<-time.After(time.Minute)
		stuck := names(states(t, group))
		if len(stuck) != 1 {
			t.Fatalf("instances after a minute: %v", stuck)
		}
		<-time.After(61 * time.Second)
		if got := states(t, group)[stuck[0]]; got != provider.StateDeleting {
			t.Errorf("state after the timeout: got %v, want deleting", got)
		}
		<-time.After(10 * time.Second)
		if got := states(t, group)[stuck[0]]; got == provider.StateCreating || got == provider.StateRunning {
			t.Errorf("it still holds a slot: %v", got)
		}
		if got := w.Count(sim.OpServerDelete); got != 1 {
			t.Errorf("deletions: got %d, want 1", got)
		}
		<-time.After(time.Minute)
		w.up(t, group, 1)
	})
}

// Ports were left over when Nova found no host, when the image or flavor was
// missing and when the key pair was bad:
// https://github.com/kubernetes-sigs/cluster-api-provider-openstack/issues/1404, /issues/1062 and /issues/723
func TestReport13FailedCreatesLeaveNoPorts(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(w *world){
		"no host": func(w *world) {
			w.SetFates(func(int, sim.ServerInfo) sim.Fate { return sim.Fate{Fault: sim.FaultNoValidHost, Hostless: true} })
		},
		"build aborted": func(w *world) {
			w.SetFates(func(int, sim.ServerInfo) sim.Fate { return sim.Fate{Fault: "Build of instance aborted: no"} })
		},
		"image gone": func(w *world) { w.RemoveImages("Ubuntu 24.04") },
		"key pair refused": func(w *world) {
			w.Inject(sim.Rule{Operation: sim.OpServerCreate, Fault: sim.Refuse(http.StatusBadRequest, "Invalid key_name provided.")})
		},
		"answer lost": func(w *world) {
			w.Inject(sim.Rule{Operation: sim.OpServerCreate, Fault: sim.CommitThenReset()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{}, func(t *testing.T, w *world) {
				group := w.start(t, nil)
				fail(w)
				increase(t, group, 5, 5)
				for range 10 {
					<-time.After(10 * time.Second)
					states(t, group)
				}
				w.retired(t, group)
				if shot := w.Snapshot(); len(shot.Ports) != 0 || len(shot.Servers) != 0 {
					t.Errorf("left: ports %+v, servers %+v", shot.Ports, shot.Servers)
				}
				if got := w.Count(sim.OpPorts); got != 0 {
					t.Errorf("the plugin made %d calls about ports; Nova makes and removes them", got)
				}
			})
		})
	}
}

// A sweep of orphans would have deleted other people's things:
// https://github.com/kubernetes-sigs/cluster-api-provider-openstack/pull/798
func TestReport14OtherPeoplesThingsStay(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		somebody := w.person(t)
		networks, _ := somebody.call(http.MethodGet, "/network/v2.0/networks?name=private", nil)
		port, _ := somebody.call(http.MethodPost, "/network/v2.0/ports", map[string]any{"port": map[string]any{"network_id": text(networks, "networks", "id")}})
		for _, spec := range []sim.ServerSpec{
			{Name: "theirs"},
			{Name: "runner-aaaaaaaa"},
			{Name: "runner-bbbbbbbb", Tags: []string{groupTag}},
			{Name: "theirs-tagged", Tags: []string{groupTag}, Metadata: map[string]string{"fleeting:group": groupTag}},
		} {
			if _, err := w.AddServer(spec); err != nil {
				t.Fatal(err)
			}
		}
		before := w.Snapshot()
		group := w.start(t, nil)
		ours := w.up(t, group, 3)
		if got, err := group.Decrease(t.Context(), ours); len(got) != 3 || err != nil {
			t.Fatalf("decrease: %v, %v", got, err)
		}
		<-time.After(time.Hour)
		if left := states(t, group); len(left) > 3 {
			t.Errorf("foreign servers were reported: %v", left)
		}
		after := w.Snapshot()
		if len(after.Servers) != len(before.Servers) || len(after.Ports) != len(before.Ports) {
			t.Errorf("%d servers and %d ports, before %d and %d", len(after.Servers), len(after.Ports), len(before.Servers), len(before.Ports))
		}
		if !slices.ContainsFunc(after.Ports, func(p sim.PortInfo) bool { return p.ID == text(port, "port", "id") }) {
			t.Error("their port that hangs on nothing is gone")
		}
	})
}

// A server deleted by hand was still thought usable, and got jobs:
// https://github.com/VertebrateResequencing/wr/issues/94 and
// https://github.com/cattle-ops/terraform-aws-gitlab-runner/issues/1217
func TestReport22DeletedByHandIsReportedAtOnce(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		group := w.start(t, nil)
		servers := w.up(t, group, 2)
		if err := w.Destroy(servers[0]); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Second)
		if err := group.Heartbeat(t.Context(), servers[0]); err == nil {
			t.Error("its heartbeat is fine")
		}
		if err := group.Heartbeat(t.Context(), servers[1]); err != nil {
			t.Errorf("heartbeat of the other one: %v", err)
		}
		reported := states(t, group)
		if reported[servers[0]] != provider.StateDeleted || reported[servers[1]] != provider.StateRunning {
			t.Errorf("the first listing after it: %v", reported)
		}
	})
}

// Stuck in deleting, until somebody forces it; and the task state deleting
// should have counted: https://github.com/jenkinsci/openstack-cloud-plugin/issues/111
// and https://github.com/rackerlabs/otter/issues/1523
func TestReport23StuckDeletionIsForced(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		w.SetFates(func(int, sim.ServerInfo) sim.Fate { return sim.Fate{StuckDeleting: true} })
		group := w.start(t, map[string]any{"delete_timeout": "3m"})
		server := w.up(t, group, 1)
		if _, err := group.Decrease(t.Context(), server); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Minute)
		shown, found := w.Snapshot().Server(server[0])
		if !found || shown.Status != "ACTIVE" || shown.TaskState != "deleting" {
			t.Fatalf("the server: %+v", shown)
		}
		if got := states(t, group)[server[0]]; got != provider.StateDeleting {
			t.Errorf("state: got %v, want deleting", got)
		}
		<-time.After(3 * time.Minute)
		states(t, group)
		if left := w.Snapshot().Servers; len(left) != 0 {
			t.Errorf("left: %+v", left)
		}
	})
}

// The first boot of a new image takes a quarter of an hour, and a slow build
// was taken for a broken one: https://github.com/osbuild/osbuild-composer/pull/1254
// and https://github.com/elasticluster/elasticluster/issues/676
func TestReport26SlowBuildIsNoFailure(t *testing.T) {
	report(t, sim.Options{BuildTime: 18 * time.Minute}, func(t *testing.T, w *world) {
		group := w.start(t, map[string]any{"build_timeout": "20m"})
		increase(t, group, 1, 1)
		for range 17 {
			<-time.After(time.Minute)
			if reported := states(t, group); count(reported, provider.StateCreating) != 1 {
				t.Fatalf("while it builds: %v", reported)
			}
		}
		<-time.After(2 * time.Minute)
		if reported := states(t, group); count(reported, provider.StateRunning) != 1 || w.Count(sim.OpServerDelete) != 0 {
			t.Errorf("after 19 minutes: %v, %d deletions", reported, w.Count(sim.OpServerDelete))
		}
	})
}

// Fixed timeouts were too short for some clouds:
// https://github.com/terraform-provider-openstack/terraform-provider-openstack/issues/1839
func TestReport32TimeoutsAreSettings(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]time.Duration{"30s": 30 * time.Second, "40m": 40 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			report(t, sim.Options{}, func(t *testing.T, w *world) {
				w.SetFates(func(int, sim.ServerInfo) sim.Fate { return sim.Fate{StuckBuilding: true} })
				group := w.start(t, map[string]any{"build_timeout": name, "delete_timeout": name})
				increase(t, group, 1, 1)
				<-time.After(limit)
				if reported := states(t, group); count(reported, provider.StateCreating) != 1 {
					t.Errorf("at the limit: %v", reported)
				}
				<-time.After(5 * time.Second)
				if reported := states(t, group); count(reported, provider.StateCreating) != 0 {
					t.Errorf("after it: %v", reported)
				}
			})
		})
	}
}

// A server that nobody remembered ran up a big bill:
// https://github.com/drone/autoscaler/issues/129
func TestReport34AnotherProcessTakesOver(t *testing.T) {
	report(t, sim.Options{BuildTime: 30 * time.Second}, func(t *testing.T, w *world) {
		first := w.start(t, nil)
		remove := w.Inject(sim.Rule{Operation: sim.OpServerCreate, Skip: 2, Fault: sim.CommitThenHang()})
		increase(t, first, 4, 4)
		<-time.After(10 * time.Second)
		w.shutdown(t, first)
		remove()
		second := w.start(t, nil)
		found := names(states(t, second))
		if len(found) != 4 {
			t.Fatalf("the next process knows %v", found)
		}
		w.retired(t, second)
	})
}

// Deleting on shutdown belongs to the runner:
// https://github.com/sardinasystems/fleeting-plugin-openstack/pull/44
func TestReport35ShutdownKeepsServers(t *testing.T) {
	report(t, sim.Options{}, func(t *testing.T, w *world) {
		group := w.start(t, nil)
		w.up(t, group, 3)
		w.shutdown(t, group)
		<-time.After(time.Hour)
		if got := len(w.Snapshot().Servers); got != 3 || w.Count(sim.OpServerDelete) != 0 {
			t.Errorf("%d servers left and %d deletions, want 3 and none", got, w.Count(sim.OpServerDelete))
		}
	})
}
