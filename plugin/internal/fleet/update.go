package fleet

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// confirmations bounds the GETs of one Update for servers that the
	// listing lacks, and confirmWorkers those under way at a time.
	confirmations  = 50
	confirmWorkers = 10
	// confirmPause is how long the answer of such a GET is believed.
	confirmPause = 10 * time.Second
	// birthGrace is how long after its acceptance a server may be missing
	// from listings and from GETs, for both lag.
	birthGrace = time.Minute
)

// Update lists the servers of the group, compares them with what is known, and
// reports each instance once. The error is that of the listing; nothing is
// reported then.
func (g *Group) Update(ctx context.Context, report func(name string, state State)) error {
	started := g.now()
	listed, err := g.cloud.List(ctx)
	if err != nil {
		return err
	}
	g.reconcile(listed)
	g.confirmMissing(ctx, listed, started)
	g.expire()
	for _, r := range g.reports() {
		report(r.name, r.state)
	}
	if ctx.Err() == nil {
		g.forget()
	}
	g.kick()
	return nil
}

// confirmMissing asks for each known server that the listing lacks. Only a
// definite "no such server" proves that it is gone.
func (g *Group) confirmMissing(ctx context.Context, listed []Server, started time.Time) {
	missing := g.missing(listed, started)
	var pool sync.WaitGroup
	slots := make(chan struct{}, confirmWorkers)
	for _, inst := range missing {
		slots <- struct{}{}
		pool.Go(func() {
			defer func() { <-slots }()
			defer func() {
				if cause := recover(); cause != nil {
					g.log.Error("panic recovered", "server", inst.name, "panic", cause)
				}
			}()
			server, err := g.cloud.Get(ctx, inst.id)
			g.mu.Lock()
			defer g.mu.Unlock()
			g.confirm(inst, server, err)
		})
	}
	pool.Wait()
}

// missing returns the servers to ask for, those not asked for longest first.
func (g *Group) missing(listed []Server, started time.Time) []*instance {
	g.mu.Lock()
	defer g.mu.Unlock()
	present := make(map[string]bool, len(listed))
	for _, s := range listed {
		present[s.ID] = true
	}
	var missing []*instance
	for _, inst := range g.ordered() {
		switch {
		case inst.id == "", present[inst.id], inst.stage == gone, inst.stage == queued:
		case !inst.born.Before(started): // accepted while the listing ran
		case g.now().Sub(inst.confirmed) < confirmPause:
		case !inst.seen && g.now().Sub(inst.born) < confirmPause: // listings lag
		case len(missing) < confirmations:
			missing = append(missing, inst)
		}
	}
	return missing
}

// confirm applies the answer to a question about a missing server.
func (g *Group) confirm(inst *instance, server Server, err error) {
	switch {
	case inst.stage == gone:
	case err == nil:
		inst.confirmed = g.now()
		g.observe(inst, server)
	case !errors.Is(err, ErrGone):
		// Not known now: what was reported last is reported again.
	case g.newborn(inst):
		inst.confirmed = g.now()
	default:
		g.vanish(inst)
	}
}

// newborn tells a server that was accepted a moment ago and never seen: that
// the cloud does not know it yet is no proof that there will be none.
func (g *Group) newborn(inst *instance) bool {
	return !inst.seen && g.now().Sub(inst.born) < birthGrace
}

// vanish notes that a server is proved gone.
func (g *Group) vanish(inst *instance) {
	if inst.stage == live {
		g.log.Warn("server is gone without having been deleted here", "server", inst.name, "id", inst.id)
		if !inst.up {
			g.fail(inst, "server vanished before it came up")
		}
	}
	g.bury(inst)
}

// expire gives up names whose turn did not come within the build timeout: the
// host asks again for what it still needs.
func (g *Group) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, inst := range g.instances {
		if inst.stage == queued && !inst.busy && g.now().Sub(inst.reserved) > g.settings.BuildTimeout {
			g.log.Warn("server given up before it could be created", "server", inst.name)
			g.bury(inst)
		}
	}
}

type reportLine struct {
	name  string
	state State
}

// reports collects what to tell the host, in a stable order.
func (g *Group) reports() []reportLine {
	g.mu.Lock()
	defer g.mu.Unlock()
	var lines []reportLine
	for _, inst := range g.ordered() {
		state := inst.state()
		if inst.stray || state == notReportable {
			continue
		}
		lines = append(lines, reportLine{inst.name, state})
		inst.last = state
	}
	return lines
}

// forget drops the instances whose end was reported, and old tombstones.
func (g *Group) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, inst := range g.instances {
		if inst.stage == gone && inst.last == WasDeleted {
			delete(g.instances, name)
		}
	}
	for name, tomb := range g.tombstones {
		if g.now().After(tomb.until) {
			delete(g.tombstones, name)
		}
	}
}
