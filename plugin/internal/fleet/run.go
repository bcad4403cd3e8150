package fleet

import (
	"context"
	"runtime/debug"
	"sync"
	"time"
)

// kind of a job that works on one instance.
type kind int

const (
	creation kind = iota
	settlement
	deletion
)

// idleWait bounds how long Run sleeps with nothing due.
const idleWait = time.Minute

// Run works through creations, lookups and deletions until ctx ends, and
// returns when the last of its jobs has. Call it once, on its own goroutine.
func (g *Group) Run(ctx context.Context) {
	var jobs sync.WaitGroup
	defer jobs.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(g.dispatch(ctx, &jobs))
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
		case <-timer.C:
		}
	}
}

// dispatch starts the jobs that are due, and returns when to look again.
func (g *Group) dispatch(ctx context.Context, jobs *sync.WaitGroup) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	wait := idleWait
	for _, inst := range g.ordered() {
		job, ok := g.jobOf(inst)
		if !ok {
			continue
		}
		if until := inst.due.Sub(g.now()); until > 0 {
			wait = min(wait, until)
			continue
		}
		if g.busy[job] >= g.workers(job) {
			continue // the end of a job wakes Run
		}
		if job == creation {
			if delay, blocked := g.blocked(); blocked {
				wait = min(wait, delay)
				continue
			}
			inst.epoch, inst.round = g.pace.Epoch(), g.width.Round()
			inst.posted, inst.filled = true, false
			inst.sent = g.now()
		}
		inst.busy = true
		g.busy[job]++
		if job == creation {
			g.markFilled()
		}
		jobs.Go(func() { g.work(ctx, inst, job) })
	}
	return wait
}

// markFilled notes for the creations under way that they were as many as the
// width allows. Others say nothing about what the cloud bears beyond it, so they
// do not widen it (for TCP, RFC 7661 gives the same reason).
func (g *Group) markFilled() {
	if g.busy[creation] < g.width.Limit() {
		return
	}
	for _, inst := range g.instances {
		if inst.stage == queued && inst.busy {
			inst.filled = true
		}
	}
}

// jobOf tells what has to be done for an instance, if anything.
func (g *Group) jobOf(inst *instance) (kind, bool) {
	switch {
	case inst.busy:
		return 0, false
	case inst.stage == queued:
		return creation, !g.closing
	case inst.stage == doubtful:
		return settlement, true
	case inst.stage == condemned || inst.stage == quarantined:
		return deletion, inst.id != ""
	default:
		return 0, false
	}
}

func (g *Group) workers(job kind) int {
	switch job {
	case creation:
		return g.width.Limit()
	case settlement, deletion:
		return g.settings.ParallelDeletes
	default:
		return 1
	}
}

// blocked reports whether the pace forbids a creation now, and when to ask
// again. During a probe it is the probe's result that wakes Run.
func (g *Group) blocked() (time.Duration, bool) {
	limit := g.pace.Limit(g.now())
	if limit < 0 {
		return 0, false
	}
	if limit == 0 {
		return time.Second, true
	}
	probing := 0
	for _, inst := range g.instances {
		if inst.starting() && inst.epoch == g.pace.Epoch() {
			probing++
		}
	}
	return time.Second, probing >= limit
}

// work runs one job. A panic costs one attempt, not the process.
func (g *Group) work(ctx context.Context, inst *instance, job kind) {
	defer g.kick()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		inst.busy = false
		g.busy[job]--
	}()
	defer func() {
		if cause := recover(); cause != nil {
			g.log.Error("panic recovered", "server", inst.name, "panic", cause, "stack", string(debug.Stack()))
			g.survive(inst, job)
		}
	}()
	switch job {
	case creation:
		g.create(ctx, inst)
	case settlement:
		g.settle(ctx, inst)
	case deletion:
		g.remove(ctx, inst)
	}
}

// survive leaves an instance in a safe stage after a panic: what may exist is
// looked for, what is to be deleted is retried.
func (g *Group) survive(inst *instance, job kind) {
	g.mu.Lock()
	defer g.mu.Unlock()
	inst.due = g.now().Add(deleteRetry)
	if job == creation && inst.stage == queued {
		inst.stage = doubtful
	}
}
