package backoff_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/backoff"
)

// fill sends as many requests as are allowed.
func fill(flow *backoff.Flow, now time.Time) (sent []*backoff.Request) {
	for {
		r, hold := flow.Send(now)
		if hold != nil {
			return sent
		}
		sent = append(sent, r)
	}
}

func TestFlow(t *testing.T) {
	t.Parallel()
	took := func(flow *backoff.Flow, r *backoff.Request) { flow.Took(r) }
	struggled := func(flow *backoff.Flow, r *backoff.Request) { flow.Struggled(epoch(), r) }
	for name, row := range map[string]struct {
		start, most int
		rounds      []func(*backoff.Flow, *backoff.Request)
		want        []int
	}{
		"grows to its bound":                             {10, 25, []func(*backoff.Flow, *backoff.Request){took, took}, []int{10, 20, 25}},
		"an explicit bound is never exceeded":            {3, 3, []func(*backoff.Flow, *backoff.Request){took}, []int{3, 3}},
		"those that fail together halve it once":         {10, 20, []func(*backoff.Flow, *backoff.Request){struggled, struggled, struggled}, []int{10, 5, 2, 1}},
		"grows again":                                    {4, 20, []func(*backoff.Flow, *backoff.Request){struggled, took, took}, []int{4, 2, 4, 8}},
		"never none":                                     {0, 0, []func(*backoff.Flow, *backoff.Request){took}, []int{1, 1}},
		"what is over without an answer changes nothing": {4, 20, []func(*backoff.Flow, *backoff.Request){(*backoff.Flow).Over}, []int{4, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flow := backoff.NewFlow(row.start, row.most, even)
			got := []int{flow.Limit()}
			for _, end := range row.rounds {
				for _, r := range fill(flow, epoch()) {
					end(flow, r)
				}
				got = append(got, flow.Limit())
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFlowNotUsedUpDoesNotGrow: a day of single requests proves nothing about
// many at a time.
func TestFlowNotUsedUpDoesNotGrow(t *testing.T) {
	t.Parallel()
	flow := backoff.NewFlow(4, 20, even)
	for range 100 {
		r, _ := flow.Send(epoch())
		flow.Took(r)
	}
	if got := flow.Limit(); got != 4 {
		t.Errorf("limit: got %d, want 4", got)
	}
}

// TestFlowRests: when even one request at a time fails, rests follow, until one
// is taken.
func TestFlowRests(t *testing.T) {
	t.Parallel()
	flow, now := backoff.NewFlow(1, 20, even), epoch()
	var rests []time.Duration
	for n := range 6 {
		r, hold := flow.Send(now)
		if hold != nil {
			t.Fatalf("held back until %v", hold.Until)
		}
		if began := flow.Struggled(now, r); began != (n == 0) {
			t.Errorf("failure %d began a time without creations: %v", n+1, began)
		}
		_, hold = flow.Send(now)
		rests = append(rests, hold.Until.Sub(now))
		now = hold.Until
	}
	s := time.Second
	if diff := cmp.Diff([]time.Duration{s, 2 * s, 4 * s, 4 * s, 4 * s, 4 * s}, rests); diff != "" {
		t.Errorf("rests (-want +got):\n%s", diff)
	}
	r, _ := flow.Send(now)
	if !flow.Took(r) || flow.Resting() {
		t.Error("a request that was taken does not end it")
	}
	if got := len(fill(flow, now)); got != 2 {
		t.Errorf("requests at a time after that: got %d, want 2", got)
	}
}
