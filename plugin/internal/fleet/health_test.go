package fleet_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// TestHealthSurvivesLostAddresses: a server that ran and whose addresses Nova
// forgets for a while reads as building; the job on it goes on.
func TestHealthSurvivesLostAddresses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		group := run(t, c)
		group.Increase(1)
		<-time.After(time.Second)
		name := only(t, group)
		<-time.After(time.Minute)
		c.mu.Lock()
		s := c.servers["id-1"]
		s.Phase = fleet.Building
		c.servers["id-1"] = s
		c.mu.Unlock()
		if err := group.Check(t.Context(), name); err != nil {
			t.Errorf("a server without addresses: %v", err)
		}
		s.Phase = fleet.Broken
		c.add(s)
		<-time.After(time.Minute)
		if err := group.Check(t.Context(), name); !errors.Is(err, fleet.ErrNotRunning) {
			t.Errorf("a broken server: got %v, want ErrNotRunning", err)
		}
	})
}
