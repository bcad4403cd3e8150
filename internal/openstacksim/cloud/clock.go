package cloud

import (
	"container/heap"
	"time"
)

// agenda holds what is still to happen, ordered by time and, within one
// moment, by the order of entry. Nothing runs it but [Cloud.advance].
type agenda []event

type event struct {
	at  time.Time
	seq uint64
	do  func()
}

func (a agenda) Len() int { return len(a) }

func (a agenda) Less(i, j int) bool {
	if a[i].at.Equal(a[j].at) {
		return a[i].seq < a[j].seq
	}
	return a[i].at.Before(a[j].at)
}

func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

func (a *agenda) Push(x any) {
	if e, ok := x.(event); ok {
		*a = append(*a, e)
	}
}

func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}

// After enters what happens d from the simulator's present. The lock is held.
func (c *Cloud) After(d time.Duration, do func()) {
	c.entries++
	heap.Push(&c.agenda, event{at: c.present.Add(max(d, 0)), seq: c.entries, do: do})
}

// advance lets everything happen that was due by now, each at its own time.
// The lock is held.
func (c *Cloud) advance() {
	now := c.clock()
	for len(c.agenda) > 0 && !c.agenda[0].at.After(now) {
		e, ok := heap.Pop(&c.agenda).(event)
		if !ok {
			break
		}
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
