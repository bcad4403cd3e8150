package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// questions bounds the GETs after one listing for servers that it lacks.
	questions = 50
	// confirmPause is how long the answer of such a GET is believed, and
	// confirmWait how long an Update waits for answers.
	confirmPause = 10 * time.Second
	confirmWait  = 2 * time.Second
	// birthGrace is how long after its acceptance a server may be missing
	// from listings and from GETs, for both lag.
	birthGrace = time.Minute
	// deathGrace is how long after its deletion was accepted a server must be
	// missing from a listing.
	deathGrace = time.Second
	// confirmAgain is how long one GET that proved a deleted server gone vouches
	// for the listings: a cloud that keeps deleted servers hides them, too.
	confirmAgain = 10 * time.Minute
)

// Update lists the servers of the group, compares them with what is known, and
// reports each instance once. The error is that of the listing; nothing is
// reported then. A listing that takes longer than ctx allows goes on with the
// next Update.
func (g *Group) Update(ctx context.Context, report func(name string, state State)) error {
	deleted, err := g.list(ctx)
	if err != nil {
		return err
	}
	g.awaitAnswers(ctx)
	g.buryAll(deleted)
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

// list reads the servers and compares them with the instances. It returns those
// whose deletion was accepted and which are not listed any more.
func (g *Group) list(ctx context.Context) (deleted []*instance, err error) {
	g.looking.Lock()
	defer g.looking.Unlock()
	if g.since.IsZero() {
		g.since = g.now()
	}
	listed, err := g.cloud.List(ctx)
	if errors.Is(err, ErrPutOff) {
		g.since = time.Time{}
		return nil, nil
	}
	if errors.Is(err, ErrUnfinished) {
		g.log.Warn("the listing takes longer than an update, going on with the next", "reason", err.Error())
		return nil, nil
	}
	since := g.since
	g.since = time.Time{}
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reconcile(listed)
	missing, deleted := g.absent(listed, since)
	for _, inst := range missing[:min(len(missing), questions)] {
		g.askAbout(inst)
	}
	asked := 0
	for _, inst := range deleted {
		if asked < questions && (inst.concealed || asked == 0 && !g.believed()) {
			asked++
			g.askAbout(inst)
		}
	}
	return deleted, nil
}

// absent returns the instances whose servers a listing lacks that began at since:
// those to ask for one by one, the ones not asked for longest first, and those whose
// deletion was accepted a moment before, oldest first.
func (g *Group) absent(listed []Server, since time.Time) (missing, deleted []*instance) {
	present := make(map[string]bool, len(listed))
	for _, s := range listed {
		present[s.ID] = true
	}
	partial := g.partial(present)
	g.all(func(inst *instance) {
		inst.concealed = !present[inst.id] && (inst.concealed || partial)
		switch {
		case inst.id == "" || present[inst.id]:
		case inst.stage == condemned || inst.stage == quarantined:
			if !inst.accepted.IsZero() && since.Sub(inst.accepted) >= deathGrace {
				deleted = append(deleted, inst)
			}
		case inst.stage == live && g.owesAnswer(inst, since):
			missing = append(missing, inst)
		}
	})
	slices.SortFunc(missing, func(a, b *instance) int { return cmp.Or(a.confirmed.Compare(b.confirmed), a.seq-b.seq) })
	slices.SortFunc(deleted, func(a, b *instance) int { return a.seq - b.seq })
	return missing, deleted
}

// owesAnswer reports whether to ask for a server that a listing which began at since
// lacks.
func (g *Group) owesAnswer(inst *instance, since time.Time) bool {
	switch {
	case !inst.born.Before(since): // accepted while the listing ran
		return false
	case g.now().Sub(inst.confirmed) < confirmPause:
		return false
	default:
		return inst.seen || g.now().Sub(inst.born) >= confirmPause // listings lag
	}
}

// partial reports whether a listing lacks a server that was not deleted, as it does
// while a part of the cloud is down. It proves nothing then of deleted servers
// either, which may run on.
func (g *Group) partial(present map[string]bool) bool {
	return g.count(func(inst *instance) bool { return inst.stage == live && inst.seen && !present[inst.id] }) > 0
}

// believed reports whether a deleted server that listings lack needs no GET of
// its own.
func (g *Group) believed() bool {
	return g.deletion.keeps || !g.deletion.confirmed.IsZero() && g.now().Sub(g.deletion.confirmed) < confirmAgain
}

// buryAll forgets servers whose deletion was accepted and which are not listed.
// Should one of them be listed again, its name is remembered and it is deleted.
func (g *Group) buryAll(deleted []*instance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.believed() {
		return
	}
	for _, inst := range deleted {
		switch {
		case inst.stage != condemned && inst.stage != quarantined || inst.concealed:
		case g.deletion.keeps && !g.deletion.forbids && !inst.forced:
			g.keep(inst)
		default:
			g.bury(inst)
		}
	}
}

// askAbout plans a GET of a server that a listing lacks.
func (g *Group) askAbout(inst *instance) {
	if g.asking++; g.quiet == nil {
		g.quiet = make(chan struct{})
	}
	g.plan(inst, confirmation, 0)
}

// answeredOne notes the end of such a GET.
func (g *Group) answeredOne() {
	if g.asking--; g.asking == 0 {
		close(g.quiet)
		g.quiet = nil
	}
}

// awaitAnswers waits a moment for the GETs under way. Those that take longer are
// known to the next Update.
func (g *Group) awaitAnswers(ctx context.Context) {
	g.mu.Lock()
	quiet := g.quiet
	g.mu.Unlock()
	if quiet == nil {
		return
	}
	timer := time.NewTimer(confirmWait)
	defer timer.Stop()
	select {
	case <-quiet:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// ask makes a GET of a server that a listing lacks. Only a definite "no such
// server" proves that it is gone.
func (g *Group) ask(ctx context.Context, inst *instance) {
	server, err := g.cloud.Get(ctx, inst.id)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case inst.stage != live && inst.stage != condemned && inst.stage != quarantined:
	case err == nil:
		inst.confirmed = g.now()
		g.observe(inst, server)
	case !errors.Is(err, ErrGone):
		// Not known now: what was reported last is reported again.
	case g.newborn(inst):
		inst.confirmed = g.now()
	default:
		if !inst.accepted.IsZero() {
			g.deletion.confirmed = g.now()
		}
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
			g.failed(inst, "server vanished before it came up")
		}
	}
	g.bury(inst)
}

// expire gives up names whose turn did not come within the build timeout: the
// host asks again for what it still needs.
func (g *Group) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	given := 0
	for _, inst := range g.instances {
		switch {
		case inst.stage == live && !inst.up:
			g.expireBuild(inst)
		case inst.stage == queued && !inst.sending && g.now().Sub(inst.reserved) > g.settings.BuildTimeout:
			given++
			g.bury(inst)
		}
	}
	if given > 0 {
		g.log.Warn("servers given up before they could be created", "servers", given, "after", g.settings.BuildTimeout.String())
	}
}

// expireBuild gives up a server that is not up in time, whatever the cloud shows
// of it, and if it shows nothing. One that is found at a start gets a moment more:
// it may be up, and only its address be missing.
func (g *Group) expireBuild(inst *instance) {
	found := inst.born.Before(inst.reserved)
	if g.now().Sub(inst.born) <= g.settings.BuildTimeout || found && g.now().Sub(inst.reserved) <= suspectGrace {
		return
	}
	s := inst.server
	s.Detail = fmt.Sprintf("not up %s after its creation: %s", g.settings.BuildTimeout, cmp.Or(inst.words, "the cloud says nothing of it"))
	g.breakDown(inst, s)
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
		if state == notReportable {
			continue
		}
		lines = append(lines, reportLine{inst.name, state})
		inst.last = state
		if state == WasDeleted {
			inst.silent = true
		}
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
	g.shrink()
}

// shrink makes the maps anew when they hold a fraction of what they held: a map
// of Go keeps the memory of its largest size.
func (g *Group) shrink() {
	size := len(g.instances) + len(g.tombstones)
	g.peak = max(g.peak, size)
	if g.peak < 1000 || size > g.peak/4 {
		return
	}
	g.peak = size
	g.instances, g.tombstones = maps.Clone(g.instances), maps.Clone(g.tombstones)
}
