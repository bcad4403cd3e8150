package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// deaf is a cloud that answers no deletion for a while.
type deaf struct {
	*cloud

	until  time.Time
	answer error
}

func (d *deaf) Delete(ctx context.Context, id string) error {
	if time.Now().Before(d.until) {
		return d.answer
	}
	return d.cloud.Delete(ctx, id)
}

func (d *deaf) ForceDelete(ctx context.Context, id string) error { return d.Delete(ctx, id) }

// TestAnOutageIsNoRefusal: a server is set aside when the cloud refuses to
// delete it, not when it cannot be asked for as long: it holds a slot, and
// another in its place would be one too many.
func TestAnOutageIsNoRefusal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer error
		held   bool
	}{
		"no answer": {fleet.ErrUnanswered, true},
		"refusal":   {fleet.ErrLocked, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &deaf{cloud: newCloud(), until: time.Now().Add(time.Hour), answer: test.answer}
				group := run(t, d)
				group.Increase(1)
				<-time.After(time.Second)
				server := only(t, group)
				group.Decrease([]string{server})
				<-time.After(30 * time.Minute)
				if got, held := report(t, group)[server]; held != test.held {
					t.Errorf("after half an hour: %q, held %v, want %v", got, held, test.held)
				}
				<-time.After(time.Hour)
				report(t, group)
				if left := d.names(); len(left) != 0 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}
