package fleet

import (
	"context"
	"time"
)

const (
	// longestPatience is how long a server is looked for until another name gets its
	// slot. Nova writes the server into its database before it answers, so one
	// that was made is mostly found at once; listings of some clouds lag. If the
	// other is in doubt, too, it has half of that, and so on down to leastPatience:
	// a job waits for all of them.
	longestPatience = 6 * time.Second
	leastPatience   = 1500 * time.Millisecond
	// watch is how long it is looked for after that, with pauses that double up to
	// watchPause. Then listings alone would show it, for as long as its name is
	// remembered.
	watch      = 10 * time.Minute
	watchPause = 30 * time.Second
)

// doubt has the server looked for instead of created again.
func (g *Group) doubt(inst *instance, err error) {
	inst.stage = doubtful
	inst.attempts = 0
	inst.uncertain = g.now()
	g.log.Warn("creation in doubt, looking the server up", "server", inst.name, "reason", err.Error())
	g.plan(inst, lookup, g.vary(time.Second))
}

// look looks a server up by its name.
func (g *Group) look(ctx context.Context, inst *instance) {
	started := g.now()
	found, err := g.cloud.Find(ctx, inst.name)
	g.mu.Lock()
	defer g.mu.Unlock()
	if inst.stage != doubtful && inst.stage != lost {
		return // a listing settled it meanwhile
	}
	inst.attempts++
	found = g.owned(found)
	age := started.Sub(inst.uncertain)
	switch {
	case err == nil && len(found) > 0:
		g.find(inst, found)
	case err == nil && inst.stage == doubtful && age >= inst.patience():
		g.lose(inst)
	case err == nil && inst.stage == lost && age >= watch:
		g.bury(inst)
	case inst.stage == doubtful && age < inst.patience():
		g.plan(inst, lookup, min(g.vary(time.Second<<min(inst.attempts, 2)), inst.patience()-age))
	case inst.stage == doubtful: // the cloud cannot be asked
		g.plan(inst, lookup, g.vary(4*time.Second))
	default:
		g.plan(inst, lookup, g.vary(min(time.Second<<min(inst.attempts, 10), watchPause)))
	}
}

// patience is how long the server of a creation in doubt is looked for until
// another name gets its slot.
func (i *instance) patience() time.Duration {
	return max(longestPatience>>min(i.losses, 10), leastPatience)
}

// owned filters the servers that are the group's by name and owner mark.
func (g *Group) owned(servers []Server) []Server {
	var ours []Server
	for _, s := range servers {
		if s.Owned && IsName(g.settings.Name, s.Name) && s.Phase != Gone {
			ours = append(ours, s)
		}
	}
	return ours
}

// lose gives the slot of a server that was not found in time to another name,
// so that no job waits for it. The host counts the one in place of the other.
func (g *Group) lose(inst *instance) {
	g.giveUp(inst)
	if inst.doomed || g.closing {
		return
	}
	other := g.reserve(inst.seq)
	other.losses = inst.losses + 1
	g.log.Warn("server not found, creating another in its place", "server", inst.name, "other", other.name)
}

// giveUp takes the slot of a doubtful server away, and goes on watching for it.
func (g *Group) giveUp(inst *instance) {
	inst.stage = lost
	inst.attempts = 0
	g.gate.Undecided(g.now(), inst.sent)
	g.plan(inst, lookup, g.vary(2*time.Second))
}

// find takes on a server that turned up in doubt. If its slot went to another
// name, it takes the slot of one that has no server; if all have, it is deleted,
// so that there are never more servers than slots.
func (g *Group) find(inst *instance, servers []Server) {
	late := inst.stage == lost
	inst.seen = true
	g.accept(inst, Created{ID: choose(inst, servers).ID})
	if late {
		g.resettle(inst)
	}
	g.adopt(inst, servers)
}

// resettle finds a slot for a server that turned up late, or condemns it.
func (g *Group) resettle(inst *instance) {
	inst.silent = inst.last == WasDeleted
	if inst.stage != live {
		return // nobody wants it any more
	}
	rival := g.rival()
	if rival == nil {
		g.condemn(inst, "turned up after another took its place")
		return
	}
	g.log.Info("server turned up, taking it in place of another", "server", inst.name, "id", inst.id, "other", rival.name)
	inst.silent, inst.last = false, notReportable
	switch {
	case rival.stage == doubtful:
		g.giveUp(rival)
	case rival.last == notReportable:
		// The host never heard of it, and counts the other instead.
		rival.unplan()
		delete(g.instances, rival.name)
	default:
		g.bury(rival)
	}
}

// rival returns an instance that has no server, if there is one: rather one whose
// creation was not sent than one in doubt, and rather the youngest.
func (g *Group) rival() *instance {
	var best *instance
	for _, inst := range g.instances {
		waiting := inst.stage == queued && !inst.sending || inst.stage == doubtful
		if !waiting || inst.doomed {
			continue
		}
		if best == nil || inst.stage < best.stage || inst.stage == best.stage && inst.seq > best.seq {
			best = inst
		}
	}
	return best
}
