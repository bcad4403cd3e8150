package cloud

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// clockSamples is how many answers the difference of the clocks is taken from.
	clockSamples = 9
	// clockSlack is a difference that Date, which has whole seconds, does not show.
	clockSlack = 3 * time.Second
	// slowAnswer is how long an answer may take whose Date is used.
	slowAnswer = 10 * time.Second
	// clockTold is the difference of the clocks that is worth a line in the log.
	clockTold = time.Minute
)

// clock measures by how much the cloud's clock is ahead of this machine's, from
// the Date of its answers (RFC 9110, section 6.6.1).
type clock struct {
	mu      sync.Mutex
	samples []time.Duration
	told    time.Duration // the difference that was logged last
}

// observe takes the Date of an answer that was asked for and received at these
// times. A cache's answer is older.
func (c *clock) observe(header http.Header, asked, received time.Time) {
	date, err := http.ParseTime(header.Get("Date"))
	took := received.Sub(asked)
	if err != nil || header.Get("Age") != "" || took < 0 || took > slowAnswer {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead := date.Add(time.Second / 2).Sub(asked.Add(took / 2))
	c.samples = append(c.samples, ahead)
	c.samples = c.samples[max(0, len(c.samples)-clockSamples):]
}

// offset is by how much the cloud's clock is ahead: the median of the samples, so
// that one wrong answer changes nothing, and 0 where they show no difference.
func (c *clock) offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(c.samples))
	if median := sorted[len(sorted)/2]; median.Abs() >= clockSlack {
		return median.Round(time.Second)
	}
	return 0
}

// report logs a difference that people should know of, again only when it
// changes.
func (c *clock) report(ctx context.Context, log *slog.Logger) {
	now := c.offset()
	c.mu.Lock()
	changed := (now - c.told).Abs() >= clockTold
	if changed {
		c.told = now
	}
	c.mu.Unlock()
	if changed {
		log.WarnContext(ctx, "the cloud's clock and this machine's differ; ages of servers are corrected for it", "cloud_ahead_by", now.String())
	}
}
