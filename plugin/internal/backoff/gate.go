package backoff

import "time"

// Gate decides when the next creation may be sent. Each outcome of a creation
// moves exactly one of its parts.
type Gate struct {
	flow    *Flow
	ceiling Ceiling
	breaker Breaker
}

// Hold is why a creation may not be sent now, and until when. A zero time means
// that the outcome of another creation, or the end of a server, will tell.
type Hold struct{ Until time.Time }

// NewGate begins with start creations at a time and never allows more than most.
// random returns numbers from 0 to below 1, which spread the waits.
func NewGate(start, most int, random func() float64) *Gate {
	return &Gate{flow: NewFlow(start, most, random), ceiling: Ceiling{random: random}, breaker: Breaker{random: random}}
}

// Send returns the next creation, or why there is none now. held is how many
// servers the cloud has or may have, those on their way included.
func (g *Gate) Send(now time.Time, held int) (*Request, *Hold) {
	if until := g.breaker.wait(now); now.Before(until) {
		return nil, &Hold{Until: until}
	}
	if hold := g.ceiling.wait(now, held); hold != nil {
		return nil, hold
	}
	r, hold := g.flow.Send(now)
	if hold != nil {
		return nil, hold
	}
	g.breaker.sent(now, r)
	g.ceiling.sent(r, held)
	return r, nil
}

// Holding reports whether anything but requests under way holds creations back.
func (g *Gate) Holding(held int) bool {
	count, met := g.ceiling.Met()
	return g.breaker.Open() || g.flow.Resting() || met && held >= count
}

// Ceiling is how many servers the cloud bears, if it has refused one.
func (g *Gate) Ceiling() (count int, met bool) { return g.ceiling.Met() }

// Took records that the cloud took a creation and bears this many servers now.
// It returns true if that ended a time in which the API took none.
func (g *Gate) Took(r *Request, borne int) (ended bool) {
	g.ceiling.took(r, borne)
	return g.flow.Took(r)
}

// Struggled records that the API was too busy or too broken for a creation,
// which was not made, or that its answer was lost. It returns true when a time
// begins in which the API takes none.
func (g *Gate) Struggled(now time.Time, r *Request) (began bool) { return g.flow.Struggled(now, r) }

// Throttled records that the API refused a creation for its rate.
func (g *Gate) Throttled(r *Request) { g.flow.Throttled(r) }

// Undecided records that a creation will have no outcome.
func (g *Gate) Undecided(now time.Time, r *Request) {
	g.ceiling.undecided(now, r)
	g.breaker.undecided(r)
	r.epoch, r.trial = -1, -1
}

// Full records that the cloud has no room for a server while it bears this many.
// first is the pause before the first trial of more. The second result is false
// if that was known.
func (g *Gate) Full(now time.Time, r *Request, borne int, first time.Duration) (pause time.Duration, news bool) {
	g.flow.Over(r)
	g.breaker.undecided(r)
	return g.ceiling.full(now, r, borne, first)
}

// Refused records that the cloud refused a creation for what it asks for, and
// returns the pause if that began one.
func (g *Gate) Refused(now time.Time, r *Request) (pause time.Duration, began bool) {
	g.flow.Over(r)
	g.ceiling.undecided(now, r)
	return g.breaker.refused(now, r)
}

// Failed records that a server did not come up, for a reason of its own, and
// returns the pause if that began one.
func (g *Gate) Failed(now time.Time, r *Request) (pause time.Duration, began bool) {
	g.ceiling.undecided(now, r)
	return g.breaker.failed(now, r)
}

// Came records that a server came up and the cloud bears this many now. It
// returns whether that ended a pause, and whether it dropped the ceiling.
func (g *Gate) Came(r *Request, borne int) (ended, dropped bool) {
	return g.breaker.came(r), g.ceiling.came(r, borne)
}
