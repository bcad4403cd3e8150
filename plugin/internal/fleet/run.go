package fleet

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/backoff"
)

const (
	// idleWait bounds how long Run sleeps with nothing due.
	idleWait = time.Minute
	// lookups and confirmations bound the questions about servers under way.
	lookups       = 4
	confirmations = 10
)

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

// dispatch starts the jobs that are due, and returns when to look again. What
// has no such time is woken by the end of a job.
func (g *Group) dispatch(ctx context.Context, jobs *sync.WaitGroup) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	wait := idleWait
	for job := range kind(kinds) {
		for {
			inst, at, ok := g.next(job)
			if !ok {
				break
			}
			now := g.now()
			if at.After(now) {
				wait = min(wait, at.Sub(now))
				break
			}
			ticket, hold := g.admit(job)
			if hold != nil {
				if !hold.Until.IsZero() {
					wait = min(wait, hold.Until.Sub(now))
				}
				break
			}
			g.take(job)
			g.start(ctx, jobs, inst, job, ticket)
		}
	}
	return wait
}

// admit lets one more job of a kind begin, or tells why not.
func (g *Group) admit(job kind) (*backoff.Request, *backoff.Hold) {
	switch job {
	case creation:
		if g.closing {
			return nil, &backoff.Hold{}
		}
		return g.gate.Send(g.now(), g.held())
	case deletion:
		return g.deletes.Send(g.now())
	case lookup:
		if g.working[job] >= lookups {
			return nil, &backoff.Hold{}
		}
	case confirmation:
		if g.working[job] >= confirmations {
			return nil, &backoff.Hold{}
		}
	default: // there is no other
	}
	return nil, nil
}

// start runs a job on an instance. The lock is held.
func (g *Group) start(ctx context.Context, jobs *sync.WaitGroup, inst *instance, job kind, ticket *backoff.Request) {
	g.working[job]++
	ctx, cancel := context.WithCancel(ctx)
	switch job {
	case creation:
		inst.sending, inst.sent, inst.abandon = true, ticket, cancel
	case deletion:
		inst.removing = true
	default: // nothing is noted of lookups and confirmations
	}
	jobs.Go(func() {
		defer cancel()
		g.work(ctx, inst, job, ticket)
	})
}

// work runs one job. A panic costs one attempt, not the process.
func (g *Group) work(ctx context.Context, inst *instance, job kind, ticket *backoff.Request) {
	defer g.kick()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.working[job]--
		if job == confirmation {
			g.answeredOne()
		}
	}()
	defer func() {
		if cause := recover(); cause != nil {
			g.log.Error("panic recovered", "server", inst.name, "panic", cause, "stack", string(debug.Stack()))
			g.survive(inst, job, ticket)
		}
	}()
	switch job {
	case creation:
		g.create(ctx, inst, ticket)
	case lookup:
		g.look(ctx, inst)
	case deletion:
		g.remove(ctx, inst, ticket)
	case confirmation:
		g.ask(ctx, inst)
	default: // there is no other
	}
}

// survive leaves an instance in a safe stage after a panic: what may exist is
// looked for, what is to be deleted is retried.
func (g *Group) survive(inst *instance, job kind, ticket *backoff.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch job {
	case creation:
		g.answered(inst, ticket, Created{}, fmt.Errorf("%w: internal error", ErrDoubtful))
	case deletion:
		inst.removing = false
		g.deletes.Over(ticket)
		g.plan(inst, deletion, deleteRetry)
	case lookup:
		g.plan(inst, lookup, deleteRetry)
	case confirmation:
		// The next listing plans another.
	default: // there is no other
	}
}
