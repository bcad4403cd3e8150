package openstacksim_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

func TestServerLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(t, openstacksim.Options{BuildTime: 8 * time.Second, DeleteTime: 3 * time.Second})
		c := newClient(t, sim)
		id := c.create("runner-1", map[string]any{"tags": []string{"runner", "g1"}, "metadata": map[string]any{"k": "v"}, "config_drive": true})

		type state struct{ Status, Task any }
		at := func() state {
			s := c.server(id)
			return state{s["status"], s["OS-EXT-STS:task_state"]}
		}
		var got []state
		got = append(got, at())
		pass(3 * time.Second)
		got = append(got, at())
		pass(5 * time.Second)
		got = append(got, at())
		c.want(http.StatusNoContent, http.MethodDelete, "/compute/v2.1/servers/"+id, nil)
		got = append(got, at())
		c.want(http.StatusNoContent, http.MethodDelete, "/compute/v2.1/servers/"+id, nil)
		pass(3 * time.Second)
		c.want(http.StatusNotFound, http.MethodGet, "/compute/v2.1/servers/"+id, nil)

		want := []state{{"BUILD", "scheduling"}, {"BUILD", "spawning"}, {"ACTIVE", nil}, {"ACTIVE", "deleting"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		if shot := sim.Snapshot(); len(shot.Servers)+len(shot.Ports)+len(shot.Volumes) != 0 {
			t.Errorf("left behind: %+v", shot)
		}
	})
}

func TestBornInError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(t, openstacksim.Options{})
		sim.SetFates(func(n int, _ openstacksim.ServerInfo) openstacksim.Fate {
			if n%2 == 0 {
				return openstacksim.Fate{Fault: openstacksim.FaultNoValidHost, Hostless: true}
			}
			return openstacksim.Fate{}
		})
		c := newClient(t, sim)
		good, bad := c.create("good", nil), c.create("bad", nil)
		pass(time.Minute)
		if got := c.server(good)["status"]; got != "ACTIVE" {
			t.Errorf("first server: %v", got)
		}
		broken := c.server(bad)
		fault := object(broken["fault"])
		if broken["status"] != "ERROR" || fault["message"] != "No valid host was found. " {
			t.Errorf("second server: %v, fault %v", broken["status"], fault)
		}
	})
}

func TestStuckDeletionEndsByForce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(t, openstacksim.Options{})
		sim.SetFates(func(int, openstacksim.ServerInfo) openstacksim.Fate { return openstacksim.Fate{StuckDeleting: true} })
		c := newClient(t, sim)
		id := c.create("stuck", nil)
		pass(time.Minute)
		c.want(http.StatusNoContent, http.MethodDelete, "/compute/v2.1/servers/"+id, nil)
		pass(time.Hour)
		if got := c.server(id)["OS-EXT-STS:task_state"]; got != "deleting" {
			t.Fatalf("task state %v", got)
		}
		c.want(http.StatusAccepted, http.MethodPost, "/compute/v2.1/servers/"+id+"/action", map[string]any{"forceDelete": nil})
		pass(time.Minute)
		c.want(http.StatusNotFound, http.MethodGet, "/compute/v2.1/servers/"+id, nil)
	})
}

func TestTokenEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, newSimulator(t, openstacksim.Options{TokenLife: 3 * time.Second}))
		c.want(http.StatusOK, http.MethodGet, "/compute/v2.1/flavors", nil)
		pass(3 * time.Second)
		c.want(http.StatusUnauthorized, http.MethodGet, "/compute/v2.1/flavors", nil)
	})
}
