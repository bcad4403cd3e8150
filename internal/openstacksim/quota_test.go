package openstacksim_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// Seen on the real services: a create whose fellows were not scheduled yet was
// accepted though the quota was used up, and ended in ERROR with code 413.
func TestQuotaIsCheckedAgainWhenScheduled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(t, openstacksim.Options{})
		if err := sim.SetQuota(openstacksim.DefaultProject, func(q *openstacksim.Quota) { q.Instances = 3 }); err != nil {
			t.Fatal(err)
		}
		c := newClient(t, sim)
		var ids []string
		for i := range 5 {
			ids = append(ids, c.create(fmt.Sprintf("together-%d", i), nil))
		}
		pass(time.Minute)
		states := map[any]int{}
		for _, id := range ids {
			shown := c.server(id)
			states[shown["status"]]++
			if fault := object(shown["fault"]); shown["status"] == "ERROR" && fault["code"] != 413.0 {
				t.Errorf("fault: %v", fault)
			}
		}
		if states["ACTIVE"] != 3 || states["ERROR"] != 2 {
			t.Errorf("statuses: %v, want 3 ACTIVE and 2 ERROR", states)
		}
		if got := len(sim.Snapshot().Ports); got != 3 {
			t.Errorf("ports: got %d, want 3", got)
		}
	})
}
