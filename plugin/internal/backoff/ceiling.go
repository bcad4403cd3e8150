package backoff

import "time"

const (
	// QuotaPause is how long after a quota was met the first creation beyond it is
	// tried: people raise it.
	QuotaPause = time.Minute
	// RoomPause is the same for a lack of hosts, which become free by themselves.
	RoomPause = time.Second
	// LongestTrial is where doubling that pause stops.
	LongestTrial = 10 * time.Minute
	// memory is how long a ceiling counts that was not met again.
	memory = time.Hour
	// proven is how many servers beyond a ceiling come up until it is dropped.
	proven = 16
)

// Ceiling is how many servers the cloud had room for when it refused another.
// Below it creations go on at once, so that each deletion is followed by a
// creation. Beyond it one is tried after a pause, which doubles with each
// refusal. If it comes up, the ceiling rises and two more may be tried, then
// four, until the cloud refuses again or the ceiling is dropped.
type Ceiling struct {
	met    bool
	count  int           // servers that the cloud bears
	step   int           // creations that may be tried beyond it
	pause  time.Duration // the last one before a trial; 0 if that came up
	until  time.Time     // the next trial
	since  time.Time     // the last refusal
	trial  int           // counts refusals
	random func() float64
}

// Met returns how many servers the cloud bears, if it has refused one.
func (c *Ceiling) Met() (count int, met bool) { return c.count, c.met }

// wait returns nil when a creation may be sent, now that the cloud has this many
// servers, those on their way included.
func (c *Ceiling) wait(now time.Time, held int) *Hold {
	if c.met && now.Sub(c.since) > memory {
		c.met, c.step = false, 0
	}
	switch {
	case !c.met || held < c.count+c.step:
		return nil
	case held > c.count || c.step > 0:
		return &Hold{}
	case now.Before(c.until):
		return &Hold{Until: c.until}
	default:
		c.step = 1
		return nil
	}
}

func (c *Ceiling) sent(r *Request, held int) {
	r.trial, r.beyond = c.trial, c.met && held >= c.count
}

// full records that the cloud had no room for a server while it bore this many.
// Its second result is false if that was known.
func (c *Ceiling) full(now time.Time, r *Request, borne int, first time.Duration) (pause time.Duration, news bool) {
	c.since = now
	if c.met && r.trial != c.trial {
		// It was sent together with the one that met the ceiling.
		c.count = min(c.count, borne)
		return 0, false
	}
	switch {
	case !c.met || c.pause == 0:
		c.pause = first
	case r.beyond:
		c.pause = min(2*c.pause, LongestTrial)
	}
	c.trial++
	c.met, c.count, c.step = true, borne, 0
	pause = jitter(c.pause, c.random)
	c.until = now.Add(pause)
	return pause, true
}

// took raises a ceiling that counts too few: the cloud takes a creation that was
// sent together with the refused one.
func (c *Ceiling) took(r *Request, borne int) {
	if c.met && r.trial != c.trial {
		c.count = max(c.count, borne)
	}
}

// came records that a server came up, and returns true if that dropped the
// ceiling.
func (c *Ceiling) came(r *Request, borne int) (dropped bool) {
	if !c.met || !r.beyond || r.trial != c.trial {
		return false
	}
	c.step++
	c.pause = 0
	c.count = max(c.count, borne)
	if c.step <= proven {
		return false
	}
	c.met, c.step = false, 0
	return true
}

// undecided records that a creation beyond the ceiling has no outcome.
func (c *Ceiling) undecided(now time.Time, r *Request) {
	if c.met && r.beyond && r.trial == c.trial && c.step == 1 {
		c.step = 0
		c.until = now.Add(jitter(RoomPause, c.random))
	}
}
