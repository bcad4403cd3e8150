package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// settleWindow is how long a creation in doubt is looked for before its
	// absence is believed. Listings lag, and a gateway that timed out may pass
	// the request on late.
	settleWindow = 2 * time.Minute
	// settlePause bounds the pause between two lookups, which start one second
	// apart and double.
	settlePause = 30 * time.Second
)

// create sends the creation of one reserved name.
func (g *Group) create(ctx context.Context, inst *instance) {
	slowed := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.width.Narrow(inst.round)
	}
	id, err := g.cloud.Create(ctx, inst.name, slowed)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err != nil:
		g.width.Narrow(inst.round)
	case inst.filled:
		g.width.Widen(inst.round)
	}
	switch {
	case err == nil:
		g.accept(inst, id)
	case errors.Is(err, ErrDoubtful):
		g.doubt(inst, err)
	default:
		g.refuse(inst, err.Error())
	}
}

// accept notes that the cloud took a creation on.
func (g *Group) accept(inst *instance, id string) {
	inst.id = id
	inst.stage = live
	inst.born = g.now()
	inst.attempts = 0
	g.log.Info("server accepted", "server", inst.name, "id", id)
	if inst.doomed {
		g.condemn(inst, "requested by the runner")
	}
}

// doubt has the server looked for instead of created again.
func (g *Group) doubt(inst *instance, err error) {
	inst.stage = doubtful
	inst.attempts = 0
	inst.due = g.now().Add(time.Second)
	g.log.Warn("creation in doubt, looking the server up", "server", inst.name, "reason", err.Error())
}

// refuse notes that no server was made. The name stays reserved, for a slot
// that the host counts must become a server, and is tried again when the pace
// allows it; after the build timeout [Group.Update] gives it up.
func (g *Group) refuse(inst *instance, reason string) {
	g.fail(inst, reason)
	inst.stage = queued
	inst.attempts++
	inst.due = g.now()
	if inst.doomed || g.closing {
		g.bury(inst)
	}
}

// settle looks a doubtful creation up by its name.
func (g *Group) settle(ctx context.Context, inst *instance) {
	started := g.now()
	found, err := g.cloud.Find(ctx, inst.name)
	g.mu.Lock()
	defer g.mu.Unlock()
	if inst.stage != doubtful {
		return // a listing settled it meanwhile
	}
	inst.attempts++
	switch {
	case err != nil:
		inst.due = g.now().Add(settleDelay(inst.attempts))
	case len(g.owned(found)) > 0:
		g.adopt(inst, g.owned(found))
	case started.Sub(inst.sent) >= settleWindow:
		g.refuse(inst, fmt.Sprintf("no server was made %s after its creation was sent", settleWindow))
	default:
		inst.due = g.now().Add(settleDelay(inst.attempts))
	}
}

func settleDelay(attempts int) time.Duration {
	return min(time.Second<<min(attempts, 10), settlePause)
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

// adopt gives an instance the server that was found under its name. Should
// there be several, the known or else the oldest one stays and the others are
// deleted: two servers must never share one slot.
func (g *Group) adopt(inst *instance, servers []Server) {
	keep := choose(inst, servers)
	for _, s := range servers {
		if s.ID != keep.ID {
			g.condemnStray(s)
		}
	}
	if inst.stage == queued || inst.stage == doubtful {
		// The server proves something about the cloud as it is now.
		inst.epoch = max(inst.epoch, g.pace.Epoch())
		g.accept(inst, keep.ID)
	}
	g.observe(inst, keep)
}

// choose prefers the server that is known, then one that still exists, then
// the oldest.
func choose(inst *instance, servers []Server) Server {
	return slices.MinFunc(servers, func(a, b Server) int {
		return cmp.Or(
			first(a.ID == inst.id, b.ID == inst.id),
			first(a.Phase != Gone, b.Phase != Gone),
			a.Created.Compare(b.Created),
			cmp.Compare(a.ID, b.ID),
		)
	})
}

// first orders what holds before what does not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// condemnStray deletes a server that doubles a name.
func (g *Group) condemnStray(s Server) {
	if g.strays[s.ID] != nil || s.Phase == Gone {
		return
	}
	g.seq++
	stray := &instance{name: s.Name, id: s.ID, seq: g.seq, stage: live, stray: true, posted: true, seen: true, server: s}
	g.strays[s.ID] = stray
	g.log.Warn("deleting a second server of one name", "server", s.Name, "id", s.ID)
	g.condemn(stray, "double")
}
