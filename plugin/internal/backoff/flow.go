package backoff

import "time"

const (
	// firstRest and longestRest bound the pause between two requests while the
	// API takes none, one at a time. The longest lets an outage cost fifteen
	// requests a minute, and its end be noticed within five seconds.
	firstRest   = time.Second
	longestRest = 4 * time.Second
)

// Flow is how many requests may be under way. Each that the API takes while as
// many as allowed are under way allows one more, up to a bound. One that meets a
// busy or broken API halves them, down to one; after that, rests between two
// requests grow instead.
type Flow struct {
	limit, most, round int
	flying             map[*Request]struct{}
	rest               time.Duration
	until              time.Time
	random             func() float64
}

// Request is one request under way, and what was known when it was sent.
type Request struct {
	round  int  // of the flow
	filled bool // as many as allowed were under way with it
	epoch  int  // of the breaker
	trial  int  // of the ceiling
	beyond bool // the ceiling
}

// NewFlow begins with start requests at a time and never allows more than most.
// Both are at least one.
func NewFlow(start, most int, random func() float64) *Flow {
	most = max(most, 1)
	return &Flow{limit: min(max(start, 1), most), most: most, flying: map[*Request]struct{}{}, random: random}
}

// Limit is how many requests may be under way, at least one.
func (f *Flow) Limit() int { return f.limit }

// Flying is how many requests are under way.
func (f *Flow) Flying() int { return len(f.flying) }

// Resting reports whether the API took none of the last requests.
func (f *Flow) Resting() bool { return f.rest > 0 }

// Send returns the next request, or why there is none now.
func (f *Flow) Send(now time.Time) (*Request, *Hold) {
	switch {
	case now.Before(f.until):
		return nil, &Hold{Until: f.until}
	case len(f.flying) >= f.limit:
		return nil, &Hold{}
	}
	r := &Request{round: f.round}
	f.flying[r] = struct{}{}
	if len(f.flying) == f.limit {
		// A limit that is not used up proves nothing about a greater one (for
		// TCP, RFC 7661 gives the same reason).
		for r := range f.flying {
			r.filled = true
		}
	}
	return r, nil
}

// Took records that the API took a request. It returns true if this ended a time
// in which it took none.
func (f *Flow) Took(r *Request) (ended bool) {
	delete(f.flying, r)
	if r.filled && r.round == f.round {
		f.limit = min(f.limit+1, f.most)
	}
	ended = f.rest > 0
	f.rest, f.until = 0, time.Time{}
	return ended
}

// Struggled records that the API was too busy or too broken for a request, or
// that its answer was lost. Requests of one round were under way together and
// fail for one reason, so only the first counts. It returns true when a time
// begins in which the API takes none.
func (f *Flow) Struggled(now time.Time, r *Request) (began bool) {
	delete(f.flying, r)
	if r.round != f.round {
		return false
	}
	f.round++
	if f.limit > 1 {
		f.limit /= 2
		return false
	}
	began = f.rest == 0
	f.rest = min(max(2*f.rest, firstRest), longestRest)
	f.until = now.Add(jitter(f.rest, f.random))
	return began
}

// Throttled records that the API refused a request for its rate. Whoever sends
// requests waits before the next, so no rests follow.
func (f *Flow) Throttled(r *Request) {
	delete(f.flying, r)
	if r.round == f.round {
		f.round++
		f.limit = max(f.limit/2, 1)
	}
}

// Over records the end of a request that says nothing about the API.
func (f *Flow) Over(r *Request) { delete(f.flying, r) }
