// Package backoff decides how many new servers may be started: after failures
// none during a pause, one as a probe after it, and any number once a server
// has come up; and how many of their creations are sent side by side.
//
// It holds no clock and starts no timer: callers pass the time in. It is not
// about retrying single API calls, which plugin/internal/cloud does.
package backoff

import "time"

// Default bounds of a pause.
const (
	// First is the pause after a first failure.
	First = 30 * time.Second
	// Longest is the pause after which doubling stops.
	Longest = 10 * time.Minute
)

// Unlimited is what [Pace.Limit] returns when nothing holds creation back.
const Unlimited = -1

// Pace is the memory of failures in a row. Its zero value is ready, pauses
// for [First] at first and [Longest] at most. It is not safe for concurrent
// use.
type Pace struct {
	failures int
	epoch    int
	until    time.Time
}

// Epoch numbers the stretch of time between two pauses. A caller remembers the
// epoch in which it started an attempt and hands it back with the result.
func (p *Pace) Epoch() int { return p.epoch }

// Limit returns how many attempts may be under way at this time: Unlimited,
// 0 during a pause, or 1 when a single probe may find out.
func (p *Pace) Limit(now time.Time) int {
	switch {
	case p.failures == 0:
		return Unlimited
	case now.Before(p.until):
		return 0
	default:
		return 1
	}
}

// Fail records that an attempt started in epoch failed, and returns the pause
// that follows. Attempts of one epoch run side by side and fail for one
// reason, so only the first of them counts: for the others counted is false.
func (p *Pace) Fail(now time.Time, epoch int) (pause time.Duration, counted bool) {
	if epoch < p.epoch {
		return 0, false
	}
	pause = Longest
	if doublings := p.failures; doublings < 10 {
		pause = min(First<<doublings, Longest)
	}
	p.failures++
	p.epoch++
	p.until = now.Add(pause)
	return pause, true
}

// Succeed records that a server whose creation started in epoch came up. Only
// one started after the last failure proves that the cloud has recovered;
// ended is true when this ended a row of failures.
func (p *Pace) Succeed(epoch int) (ended bool) {
	if p.failures == 0 || epoch < p.epoch {
		return false
	}
	p.failures = 0
	p.until = time.Time{}
	return true
}
