package openstacksim

import (
	"container/heap"
	"time"
)

// agenda holds what is still to happen, ordered by time and, within one
// moment, by the order of entry. Nothing runs it but [Simulator.advance].
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

// after enters what happens d from the simulator's present. The lock is held.
func (s *Simulator) after(d time.Duration, do func()) {
	s.eventSeq++
	heap.Push(&s.agenda, event{at: s.present.Add(max(d, 0)), seq: s.eventSeq, do: do})
}

// advance lets everything happen that was due by now, each at its own time.
// The lock is held.
func (s *Simulator) advance() {
	now := s.options.Now()
	for len(s.agenda) > 0 && !s.agenda[0].at.After(now) {
		e, ok := heap.Pop(&s.agenda).(event)
		if !ok {
			break
		}
		if e.at.After(s.present) {
			s.present = e.at
		}
		e.do()
	}
	if now.After(s.present) {
		s.present = now
	}
	s.weather = s.condition()
}
