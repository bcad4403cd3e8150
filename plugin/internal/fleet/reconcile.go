package fleet

import (
	"fmt"
	"slices"
	"time"
)

// suspectGrace is how long a server may stay Suspect before it is broken.
const suspectGrace = time.Minute

// reconcile compares a listing with the instances.
func (g *Group) reconcile(listed []Server) {
	g.mu.Lock()
	defer g.mu.Unlock()
	byName := map[string][]Server{}
	foreign := map[string]bool{}
	for _, s := range listed {
		switch {
		case !s.Owned || !IsName(g.settings.Name, s.Name):
			foreign[s.ID] = true
			g.reportForeign(s)
		case g.strays[s.ID] != nil:
			g.observe(g.strays[s.ID], s)
		default:
			byName[s.Name] = append(byName[s.Name], s)
		}
	}
	g.foreign = foreign
	for name, servers := range byName {
		g.match(name, servers)
	}
}

// match applies the listed servers of one name.
func (g *Group) match(name string, servers []Server) {
	inst, known := g.instances[name]
	switch {
	case known && inst.stage == queued && inst.busy:
		// The answer to its creation is about to come.
	case known && inst.stage == gone, !known && !g.tombstones[name].until.IsZero():
		g.condemnRisen(name, servers)
	case known && (inst.stage == condemned || inst.stage == quarantined):
		for _, s := range servers {
			if s.ID == inst.id {
				g.observe(inst, s)
			} else {
				g.condemnStray(s)
			}
		}
	case known:
		g.adopt(inst, servers)
	default:
		servers = slices.DeleteFunc(servers, func(s Server) bool { return s.Phase == Gone })
		if len(servers) > 0 {
			g.discover(name, servers)
		}
	}
}

// condemnRisen deletes servers whose name was given up for good, for example
// because a gateway passed their creation on very late. The one that was
// proved gone itself is at first only a listing that lags.
func (g *Group) condemnRisen(name string, servers []Server) {
	tomb := g.tombstones[name]
	for _, s := range servers {
		lags := s.ID == tomb.id && g.now().Sub(tomb.since) < birthGrace
		if !lags {
			g.condemnStray(s)
		}
	}
}

// discover adds a server that carries the group's mark and name but is not
// known: one of an earlier process, or one whose creation was cut off by the
// end of that process.
func (g *Group) discover(name string, servers []Server) {
	g.seq++
	inst := &instance{
		name: name, seq: g.seq, stage: live, posted: true, epoch: -1, round: -1,
		reserved: g.now(),
	}
	g.instances[name] = inst
	found := choose(inst, servers)
	inst.id, inst.born = found.ID, g.birth(found)
	g.log.Info("server discovered", "server", name, "id", inst.id)
	g.adopt(inst, servers)
}

// birth is when a discovered server was made, as far as the cloud's clock can
// be believed.
func (g *Group) birth(s Server) time.Time {
	now := g.now()
	if s.Created.IsZero() || s.Created.After(now) {
		return now
	}
	return s.Created
}

// reportForeign says once that a server carries the tag but is not the
// group's. It is left alone and gets no jobs.
func (g *Group) reportForeign(s Server) {
	if g.foreign[s.ID] {
		return
	}
	g.log.Warn("a server carries the group's tag but not its name and owner mark; leaving it alone",
		"server", s.Name, "id", s.ID)
}

// observe applies what the cloud says of an instance's server.
func (g *Group) observe(inst *instance, s Server) {
	inst.seen = true
	inst.looked = g.now()
	if inst.id == "" {
		inst.id = s.ID
	}
	if s.Phase == Gone {
		g.vanish(inst)
		return
	}
	if s.Phase != Unknown {
		if len(s.Addresses) == 0 {
			// Nova loses addresses from its cache at times; the server keeps them.
			s.Addresses = inst.server.Addresses
		}
		inst.server = s
	}
	if s.Phase != Suspect {
		inst.suspected = time.Time{}
	}
	if inst.stage != live {
		return
	}
	switch s.Phase {
	case Building:
		g.observeBuilding(inst, s)
	case Running:
		if !inst.up {
			inst.up = true
			g.log.Info("server is up", "server", inst.name, "id", inst.id,
				"after", g.now().Sub(inst.born).Round(time.Millisecond).String())
			g.succeed(inst)
		}
	case Suspect:
		g.observeSuspect(inst, s)
	case Broken:
		g.breakDown(inst, s.Detail)
	case Deleting:
		g.condemn(inst, "is being deleted")
	case Unknown, Gone:
	}
}

func (g *Group) observeBuilding(inst *instance, s Server) {
	if age := g.now().Sub(inst.born); !inst.up && age > g.settings.BuildTimeout {
		g.breakDown(inst, fmt.Sprintf("not up %s after its creation: %s", g.settings.BuildTimeout, s.Detail))
	}
}

func (g *Group) observeSuspect(inst *instance, s Server) {
	if inst.suspected.IsZero() {
		inst.suspected = g.now()
	}
	if g.now().Sub(inst.suspected) > suspectGrace {
		g.breakDown(inst, s.Detail)
	}
}

// breakDown deletes a server that is neither building nor running.
func (g *Group) breakDown(inst *instance, detail string) {
	g.log.Warn("deleting a server that is not usable", "server", inst.name, "id", inst.id, "reason", detail)
	if !inst.up && inst.epoch >= 0 {
		g.fail(inst, detail)
	}
	g.condemn(inst, detail)
}
