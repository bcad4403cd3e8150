package backoff

import "time"

const (
	// FirstPause is the first pause of a [Breaker].
	FirstPause = 10 * time.Second
	// LongestPause is where doubling it stops.
	LongestPause = 10 * time.Minute
	// Surplus is how many more servers must have failed than come up, lately,
	// to open a [Breaker]. While most come up it does not grow: with three of ten
	// failing it gets to eight once in thousands of servers, with every second one
	// failing after some seventy, and with all failing after eight.
	Surplus = 8
	// probes is how many creations find out whether servers come up again. If
	// every second host is bad, all three meet one in one of eight times.
	probes = 3
)

// Breaker holds creations back while servers do not come up. It opens when
// failures outweigh successes, or at once when the cloud refuses the request
// itself, which no other creation would change. After a pause probes are let
// through; one that comes up closes it, and if all fail the next pause is twice
// as long.
type Breaker struct {
	surplus int
	epoch   int // counts openings
	pauses  int // openings in a row; 0 while closed
	until   time.Time
	left    int // probes that may be sent
	out     int // probes without an outcome
	random  func() float64
}

// Open reports whether the breaker holds creations back.
func (b *Breaker) Open() bool { return b.pauses > 0 }

// wait returns until when no creation may be sent.
func (b *Breaker) wait(now time.Time) time.Time {
	if b.pauses > 0 && b.left == 0 && !now.Before(b.until) {
		// The probes take their time. More are let through after as long a wait,
		// because a server that hangs in its build must not hold up all others.
		b.left = probes
	}
	return b.until
}

func (b *Breaker) sent(now time.Time, r *Request) {
	r.epoch = b.epoch
	if b.pauses == 0 {
		return
	}
	b.out++
	if b.left--; b.left == 0 {
		b.until = now.Add(b.pause())
	}
}

// came records that a server came up, and returns true if that closed the
// breaker. A server whose creation is older than the pause counts, too, for
// failures are often faster than successes; the next failure opens it again.
func (b *Breaker) came(r *Request) (closed bool) {
	if b.pauses == 0 {
		b.surplus = max(b.surplus-1, 0)
		return false
	}
	b.surplus = 0
	if r.epoch != b.epoch {
		b.surplus = Surplus - 1
	}
	b.pauses, b.out, b.left, b.until = 0, 0, 0, time.Time{}
	b.epoch++
	return true
}

// failed records that a server did not come up, and returns the pause if that
// opened the breaker. Failures of creations that are older than the last pause
// say nothing new.
func (b *Breaker) failed(now time.Time, r *Request) (pause time.Duration, opened bool) {
	if r.epoch != b.epoch {
		return 0, false
	}
	if b.pauses > 0 {
		b.out--
		if b.out > 0 || b.left > 0 {
			return 0, false
		}
		return b.open(now), true
	}
	b.surplus++
	if b.surplus < Surplus {
		return 0, false
	}
	return b.open(now), true
}

// refused records that the cloud refused a request for what is in it.
func (b *Breaker) refused(now time.Time, r *Request) (pause time.Duration, opened bool) {
	if r.epoch != b.epoch {
		return 0, false
	}
	return b.open(now), true
}

// undecided records that a probe has no outcome: another may take its place.
func (b *Breaker) undecided(r *Request) {
	if b.pauses > 0 && r.epoch == b.epoch {
		b.out--
		b.left++
		b.until = time.Time{}
	}
}

func (b *Breaker) open(now time.Time) time.Duration {
	b.pauses++
	b.epoch++
	b.surplus, b.out, b.left = 0, 0, probes
	pause := b.pause()
	b.until = now.Add(pause)
	return pause
}

// pause is that of the present opening.
func (b *Breaker) pause() time.Duration {
	pause := LongestPause
	if doublings := b.pauses - 1; doublings < 10 {
		pause = min(FirstPause<<doublings, LongestPause)
	}
	return jitter(pause, b.random)
}
