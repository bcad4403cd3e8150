package cloud_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
)

// TestEventsHappenInOrder: by time, and at one time in the order of entry; what
// an event enters happens in the same call if it is due, at its own time.
func TestEventsHappenInOrder(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := begin
	c := cloud.New(cloud.Options{Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)})
	var got []string
	note := func(name string) func() {
		return func() { got = append(got, name+" "+c.Now().Sub(begin).String()) }
	}
	c.Do(func() {
		c.After(2*time.Second, note("later"))
		c.After(time.Second, note("first"))
		c.After(time.Second, func() {
			note("second")()
			c.After(time.Second, note("entered by it"))
			c.After(time.Hour, note("not due"))
		})
		c.After(-time.Second, note("at once"))
	})
	now = begin.Add(time.Minute)
	c.Do(note("call"))
	want := []string{"at once 0s", "first 1s", "second 1s", "later 2s", "entered by it 2s", "call 1m0s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
