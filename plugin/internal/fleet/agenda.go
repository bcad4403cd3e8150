package fleet

import (
	"container/heap"
	"time"
)

// kind of a job that works on one instance.
type kind int

const (
	creation     kind = iota
	lookup            // of a server that may have been made
	deletion          //
	confirmation      // that a server which listings lack is gone

	kinds = 1 + int(confirmation)
)

// agenda holds the instances that need a job of one kind, ordered by when it is
// due and, for one moment, by when they were reserved. An instance that was
// planned anew stays in it with an old plan, which is skipped.
type agenda []entry

type entry struct {
	at   time.Time
	inst *instance
	plan int
}

func (a agenda) Len() int      { return len(a) }
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

func (a agenda) Less(i, j int) bool {
	if a[i].at.Equal(a[j].at) {
		return a[i].inst.seq < a[j].inst.seq
	}
	return a[i].at.Before(a[j].at)
}

func (a *agenda) Push(x any) {
	if e, ok := x.(entry); ok {
		*a = append(*a, e)
	}
}

func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	old[len(old)-1] = entry{} // lets the instance be collected
	*a = old[:len(old)-1]
	return last
}

// plan enters the next job of an instance, in place of the one that was planned.
// The lock must be held.
func (g *Group) plan(inst *instance, job kind, after time.Duration) {
	inst.plans[job]++
	heap.Push(&g.agendas[job], entry{at: g.now().Add(after), inst: inst, plan: inst.plans[job]})
	g.kick()
}

// unplan drops the jobs of an instance that were planned.
func (i *instance) unplan() {
	for job := range i.plans {
		i.plans[job]++
	}
}

// next returns the instance whose job of this kind is due first, and when.
func (g *Group) next(job kind) (*instance, time.Time, bool) {
	a := &g.agendas[job]
	for a.Len() > 0 {
		first := (*a)[0]
		if first.plan == first.inst.plans[job] {
			return first.inst, first.at, true
		}
		heap.Pop(a)
	}
	return nil, time.Time{}, false
}

// take removes what next returned.
func (g *Group) take(job kind) { heap.Pop(&g.agendas[job]) }
