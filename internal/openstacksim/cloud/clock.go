package cloud

import (
	"slices"
	"time"
)

// event is what is still to happen. Nothing runs it but [Cloud.advance].
type event struct {
	at time.Time
	do func()
}

// After enters what happens d from the cloud's present, after what was entered
// for the same time before. The lock is held.
func (c *Cloud) After(d time.Duration, do func()) {
	at := c.present.Add(max(d, 0))
	place, _ := slices.BinarySearchFunc(c.agenda, at, func(e event, at time.Time) int {
		if e.at.After(at) {
			return 1
		}
		return -1
	})
	c.agenda = slices.Insert(c.agenda, place, event{at, do})
}

// advance lets everything happen that was due by now, each at its own time.
// The lock is held.
func (c *Cloud) advance() {
	now := c.clock()
	for len(c.agenda) > 0 && !c.agenda[0].at.After(now) {
		e := c.agenda[0]
		c.agenda = c.agenda[1:]
		if e.at.After(c.present) {
			c.present = e.at
		}
		e.do()
	}
	if now.After(c.present) {
		c.present = now
	}
	c.Condition = c.rules.Condition(c.set)
}

// Now is the time of the event or call at work. The lock is held.
func (c *Cloud) Now() time.Time { return c.present }

// Layouts of times in answers, all in UTC.
const (
	Seconds = "2006-01-02T15:04:05Z"
	Micros  = "2006-01-02T15:04:05.000000"
)

// Stamp writes a time by the cloud's clock. The lock is held.
func (c *Cloud) Stamp(t time.Time, layout string) string {
	return t.Add(c.Condition.Clock).UTC().Format(layout)
}

// ParseTime reads a time that a caller wrote by the cloud's clock. The lock is held.
func (c *Cloud) ParseTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Add(-c.Condition.Clock), true
		}
	}
	return time.Time{}, false
}
