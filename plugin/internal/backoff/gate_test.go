package backoff_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/backoff"
)

// even spreads no wait.
func even() float64 { return 0.5 }

func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// send returns a creation that must be let through.
func send(t *testing.T, gate *backoff.Gate, now time.Time, held int) *backoff.Request {
	t.Helper()
	r, hold := gate.Send(now, held)
	if hold != nil {
		t.Fatalf("held back with %d servers until %v", held, hold.Until)
	}
	return r
}

// held is how long the gate holds a creation back: 0 for not at all, -1 for until
// something ends.
func held(t *testing.T, gate *backoff.Gate, now time.Time, servers int) time.Duration {
	t.Helper()
	r, hold := gate.Send(now, servers)
	switch {
	case hold == nil:
		gate.Undecided(now, r)
		gate.Struggled(now, r)
		return 0
	case hold.Until.IsZero():
		return -1
	default:
		return hold.Until.Sub(now)
	}
}

func TestBreakerOpensWhenFailuresDominate(t *testing.T) {
	t.Parallel()
	const up, fails = true, false
	for name, row := range map[string]struct {
		outcomes []bool
		open     bool
	}{
		"seven in a row":                 {[]bool{fails, fails, fails, fails, fails, fails, fails}, false},
		"eight in a row":                 {[]bool{fails, fails, fails, fails, fails, fails, fails, fails}, true},
		"as many of each":                {[]bool{fails, up, fails, up, fails, up, fails, up, fails, up, fails, up}, false},
		"three of four":                  {[]bool{fails, fails, fails, up, fails, fails, fails, up, fails, fails, fails, up, fails, fails, fails, up, fails}, true},
		"success long ago helps nothing": {[]bool{up, up, up, up, up, up, fails, fails, fails, fails, fails, fails, fails, fails}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := backoff.NewGate(10, 10, even)
			opened := false
			for _, outcome := range row.outcomes {
				r := send(t, gate, epoch(), 0)
				gate.Took(r, 1)
				if outcome == up {
					gate.Came(r, 1)
				} else if _, began := gate.Failed(epoch(), r); began {
					opened = true
					break
				}
			}
			if opened != row.open {
				t.Errorf("opened: %v, want %v", opened, row.open)
			}
		})
	}
}

// TestPausesDouble: with every probe failing, three of them go out after 10, 20,
// 40 seconds and so on, up to ten minutes apart.
func TestPausesDouble(t *testing.T) {
	t.Parallel()
	gate, now := backoff.NewGate(10, 10, even), epoch()
	pause, began := gate.Refused(now, send(t, gate, now, 0))
	var got []time.Duration
	for range 8 {
		if !began {
			t.Fatal("the failure of all probes began no pause")
		}
		began = false
		got = append(got, pause)
		if wait := held(t, gate, now, 0); wait != pause {
			t.Errorf("held back for %v, want %v", wait, pause)
		}
		now = now.Add(pause)
		probes := []*backoff.Request{send(t, gate, now, 0), send(t, gate, now, 0), send(t, gate, now, 0)}
		if _, hold := gate.Send(now, 0); hold == nil {
			t.Error("a fourth probe was let through")
		}
		for _, probe := range probes {
			gate.Took(probe, 0)
			if began {
				t.Error("the pause began before all probes had failed")
			}
			pause, began = gate.Failed(now, probe)
		}
	}
	s, m := time.Second, time.Minute
	if diff := cmp.Diff([]time.Duration{10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 320 * s, 10 * m, 10 * m}, got); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

func TestAServerThatComesUpClosesTheBreaker(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (gate *backoff.Gate, older *backoff.Request) {
		t.Helper()
		gate = backoff.NewGate(10, 10, even)
		older = send(t, gate, epoch(), 0)
		gate.Took(older, 1)
		for range backoff.Surplus {
			r := send(t, gate, epoch(), 0)
			gate.Took(r, 0)
			gate.Failed(epoch(), r)
		}
		return gate, older
	}
	t.Run("a probe", func(t *testing.T) {
		t.Parallel()
		gate, _ := open(t)
		now := epoch().Add(backoff.FirstPause)
		probe := send(t, gate, now, 0)
		gate.Took(probe, 1)
		if ended, _ := gate.Came(probe, 1); !ended {
			t.Error("the breaker stays open")
		}
		for range backoff.Surplus - 1 {
			r := send(t, gate, now, 0)
			gate.Took(r, 0)
			if _, began := gate.Failed(now, r); began {
				t.Error("it opens again before failures dominate again")
			}
		}
	})
	t.Run("an older one, until the next failure", func(t *testing.T) {
		t.Parallel()
		gate, older := open(t)
		if ended, _ := gate.Came(older, 1); !ended {
			t.Error("the breaker stays open")
		}
		r := send(t, gate, epoch(), 0)
		gate.Took(r, 0)
		if _, began := gate.Failed(epoch(), r); !began {
			t.Error("the next failure does not open it")
		}
	})
	t.Run("a probe that hangs in its build holds up no others", func(t *testing.T) {
		t.Parallel()
		gate, _ := open(t)
		now := epoch().Add(backoff.FirstPause)
		for range 3 {
			for range 3 {
				gate.Took(send(t, gate, now, 0), 0)
			}
			now = now.Add(backoff.FirstPause)
		}
	})
}

func TestCeiling(t *testing.T) {
	t.Parallel()
	// meet sends five creations of which the cloud takes two.
	meet := func(t *testing.T) *backoff.Gate {
		t.Helper()
		gate := backoff.NewGate(10, 10, even)
		var sent []*backoff.Request
		for n := range 5 {
			sent = append(sent, send(t, gate, epoch(), n))
		}
		gate.Full(epoch(), sent[0], 0, backoff.QuotaPause)
		gate.Took(sent[1], 1)
		gate.Full(epoch(), sent[2], 1, backoff.QuotaPause)
		gate.Took(sent[3], 2)
		gate.Full(epoch(), sent[4], 2, backoff.QuotaPause)
		if count, met := gate.Ceiling(); count != 2 || !met {
			t.Fatalf("ceiling: got %d %v, want 2", count, met)
		}
		return gate
	}
	t.Run("a deletion makes room at once", func(t *testing.T) {
		t.Parallel()
		gate := meet(t)
		if got := held(t, gate, epoch(), 2); got != backoff.QuotaPause {
			t.Errorf("with two servers: held back for %v, want %v", got, backoff.QuotaPause)
		}
		if got := held(t, gate, epoch(), 1); got != 0 {
			t.Errorf("with one server: held back for %v", got)
		}
	})
	t.Run("beyond it one is tried, at longer and longer intervals", func(t *testing.T) {
		t.Parallel()
		gate, now := meet(t), epoch()
		var got []time.Duration
		for range 6 {
			wait := held(t, gate, now, 2)
			got = append(got, wait)
			now = now.Add(wait)
			r := send(t, gate, now, 2)
			if wait := held(t, gate, now, 3); wait != -1 {
				t.Errorf("a second trial beside the first: held back for %v", wait)
			}
			if _, news := gate.Full(now, r, 2, backoff.QuotaPause); !news {
				t.Error("the refusal is no news")
			}
		}
		m := time.Minute
		if diff := cmp.Diff([]time.Duration{m, 2 * m, 4 * m, 8 * m, 10 * m, 10 * m}, got); diff != "" {
			t.Errorf("intervals (-want +got):\n%s", diff)
		}
	})
	t.Run("it rises in steps, and is dropped", func(t *testing.T) {
		t.Parallel()
		gate, now, servers := meet(t), epoch().Add(backoff.QuotaPause), 2
		var steps []int
		for dropped := false; !dropped; {
			var sent []*backoff.Request
			for {
				r, hold := gate.Send(now, servers+len(sent))
				if hold != nil {
					break
				}
				sent = append(sent, r)
				gate.Took(r, servers)
			}
			steps = append(steps, len(sent))
			for _, r := range sent {
				servers++
				_, more := gate.Came(r, servers)
				dropped = dropped || more
			}
		}
		if diff := cmp.Diff([]int{1, 2, 4, 8, 16}, steps); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
	})
	t.Run("others take room", func(t *testing.T) {
		t.Parallel()
		gate := meet(t)
		gate.Full(epoch(), send(t, gate, epoch(), 1), 1, backoff.QuotaPause)
		if got := held(t, gate, epoch(), 1); got != backoff.QuotaPause {
			t.Errorf("with one server: held back for %v, want %v", got, backoff.QuotaPause)
		}
	})
	t.Run("a server that is accepted beyond it proves nothing yet", func(t *testing.T) {
		t.Parallel()
		gate, now := meet(t), epoch().Add(backoff.QuotaPause)
		gate.Took(send(t, gate, now, 2), 3)
		if got := held(t, gate, now, 3); got != -1 {
			t.Errorf("with the trial building: held back for %v, want until it ends", got)
		}
	})
	t.Run("it is forgotten after an hour", func(t *testing.T) {
		t.Parallel()
		gate := meet(t)
		if got := held(t, gate, epoch().Add(61*time.Minute), 5); got != 0 {
			t.Errorf("held back for %v", got)
		}
	})
}
