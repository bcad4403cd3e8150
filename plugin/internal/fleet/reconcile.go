package fleet

import (
	"cmp"
	"slices"
	"time"
)

// suspectGrace is how long a server may stay Suspect before it is broken.
const suspectGrace = time.Minute

// reconcile compares a listing with the instances. The lock must be held.
func (g *Group) reconcile(listed []Server) {
	// By name, in the order of the listing, so that equal listings lead to equal
	// decisions.
	var ours [][]Server
	byName := make(map[string]int, len(listed))
	add := func(s Server) {
		i, known := byName[s.Name]
		if !known {
			byName[s.Name] = len(ours)
			ours = append(ours, []Server{s})
			return
		}
		ours[i] = append(ours[i], s)
	}
	foreign, others, told, ghosts := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]time.Time{}
	for _, s := range listed {
		if next, ghost := g.ghosts[s.ID]; ghost {
			ghosts[s.ID] = next
		}
		switch {
		case g.strays[s.ID] != nil:
			g.observe(g.strays[s.ID], s)
		case g.knows(s):
			add(s)
		case !s.Owned || !IsName(g.settings.Name, s.Name):
			foreign[s.ID] = true
			g.reportForeign(s)
		case g.belongs(s, others, told):
			add(s)
		}
	}
	g.foreign, g.others, g.toldPeers, g.ghosts = foreign, others, told, ghosts
	for _, servers := range ours {
		g.match(servers[0].Name, servers)
	}
	g.listed = g.now()
}

// match applies the listed servers of one name.
func (g *Group) match(name string, servers []Server) {
	inst, known := g.instances[name]
	if !known {
		if !g.tombstones[name].until.IsZero() {
			g.condemnRisen(name, servers)
		} else if servers = existing(servers); len(servers) > 0 {
			g.discover(name, servers)
		}
		return
	}
	switch inst.stage {
	case queued, doubtful, lost:
		if servers = existing(servers); len(servers) > 0 {
			g.meet(inst, servers)
		}
	case live:
		g.adopt(inst, servers)
	case condemned, kept, quarantined:
		for _, s := range servers {
			if s.ID == inst.id {
				g.observe(inst, s)
			} else {
				g.condemnDouble(s)
			}
		}
	case gone:
		g.condemnRisen(name, servers)
	}
}

// meet takes on the server of a creation that has no answer yet, or whose answer
// was lost. A name whose creation was never sent has no server of ours.
func (g *Group) meet(inst *instance, servers []Server) {
	if inst.stage != queued {
		g.find(inst, servers)
		return
	}
	if inst.sending {
		inst.abandon()
	}
	inst.seen = true
	g.accept(inst, Created{ID: choose(inst, servers).ID})
	g.adopt(inst, servers)
}

func existing(servers []Server) []Server {
	return slices.DeleteFunc(servers, func(s Server) bool { return s.Phase == Gone })
}

// adopt gives an instance the server that was found under its name. Should
// there be several, the known or else the oldest one stays and the others are
// deleted: two servers must never share one slot.
func (g *Group) adopt(inst *instance, servers []Server) {
	keep := choose(inst, servers)
	for _, s := range servers {
		if s.ID != keep.ID || s.ID != inst.id {
			g.condemnDouble(s)
		}
	}
	if keep.ID == inst.id {
		g.observe(inst, keep)
	}
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

// condemnRisen deletes servers whose name was given up for good, for example
// because a gateway passed their creation on very late. The one that was
// proved gone itself is at first only a listing that lags.
func (g *Group) condemnRisen(name string, servers []Server) {
	tomb := g.tombstones[name]
	for _, s := range servers {
		switch {
		case s.ID != tomb.id:
			g.condemnDouble(s)
		case g.now().Sub(tomb.since) >= birthGrace:
			g.doubtGhost(s)
		}
	}
}

// doubtGhost deletes a server that is listed although the cloud has said that it
// does not exist. If it goes on saying so, the listing is wrong: that is said once,
// and the server is tried again as rarely as a quarantined one.
func (g *Group) doubtGhost(s Server) {
	next, known := g.ghosts[s.ID]
	if s.Phase == Gone || known && g.now().Before(next) {
		return
	}
	g.ghosts[s.ID] = g.now().Add(g.vary(quarantineRetry))
	if g.condemnStray(s) && !known {
		g.log.Warn("a server is listed that the cloud says does not exist; quarantined", "server", s.Name, "id", s.ID)
	}
}

// condemnDouble deletes a server that doubles a name.
func (g *Group) condemnDouble(s Server) {
	if g.condemnStray(s) {
		g.log.Warn("deleting a second server of one name", "server", s.Name, "id", s.ID)
	}
}

// condemnStray deletes a server that is not reported to the host. It returns false
// if that is under way.
func (g *Group) condemnStray(s Server) bool {
	if g.strays[s.ID] != nil || s.Phase == Gone {
		return false
	}
	g.seq++
	stray := &instance{name: s.Name, id: s.ID, seq: g.seq, stage: live, silent: true, seen: true, server: s}
	g.strays[s.ID] = stray
	g.condemn(stray, "not this process's to keep")
	return true
}

// discover adds a server that carries the group's mark and name but is not
// known: one of an earlier process, or one whose creation was cut off by the
// end of that process.
func (g *Group) discover(name string, servers []Server) {
	g.seq++
	inst := &instance{name: name, seq: g.seq, stage: live, reserved: g.now()}
	g.instances[name] = inst
	found := choose(inst, servers)
	inst.id, inst.born, inst.sure = found.ID, g.birth(found), g.now()
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
	if g.foreign[s.ID] || s.Going() {
		return
	}
	g.log.Warn("a server carries the group's tag but not its name and owner mark; leaving it alone",
		"server", s.Name, "id", s.ID)
}

// observe applies what the cloud says of an instance's server.
func (g *Group) observe(inst *instance, s Server) {
	inst.seen = true
	inst.looked = g.now()
	switch s.Phase {
	case Gone:
		g.vanish(inst)
		return
	case Kept:
		g.keep(inst)
		return
	case Unknown, Building, Running, Deleting, Suspect, Broken:
	}
	g.learn(inst, s)
	if s.Phase != Suspect {
		inst.suspected = time.Time{}
	}
	if inst.stage != live {
		g.observeDying(inst, s)
		return
	}
	switch s.Phase {
	case Running:
		if !inst.up {
			g.came(inst)
		}
	case Suspect:
		g.observeSuspect(inst, s)
	case Broken:
		g.breakDown(inst, s)
	case Deleting:
		g.condemn(inst, "is being deleted")
	case Building, Unknown, Kept, Gone:
	}
}

// learn keeps what the cloud says of a server. What it cannot tell now stays as
// it was.
func (g *Group) learn(inst *instance, s Server) {
	inst.words = s.Detail
	if s.Phase == Unknown {
		if inst.stage == live && !inst.unsure {
			inst.unsure = true
			g.log.Warn("the cloud shows a status that says nothing of whether the server works", "server", inst.name, "id", inst.id, "status", s.Detail)
		}
		return
	}
	inst.unsure, inst.sure = false, g.now()
	if len(s.Addresses) == 0 {
		// Nova loses addresses from its cache at times; the server keeps them.
		s.Addresses = inst.server.Addresses
	}
	if !s.Owned { // its metadata is gone before it is
		s.Platform = inst.server.Platform
	}
	inst.server = s
}

func (g *Group) observeSuspect(inst *instance, s Server) {
	if inst.suspected.IsZero() {
		inst.suspected = g.now()
	}
	if g.now().Sub(inst.suspected) > suspectGrace {
		g.breakDown(inst, s)
	}
}

// breakDown deletes a server that is neither building nor running.
func (g *Group) breakDown(inst *instance, s Server) {
	reason := s.Detail
	if inst.request != "" {
		// The fault of a build that failed names no request.
		reason += " (created by " + inst.request + ")"
	}
	g.log.Warn("deleting a server that is not usable", "server", inst.name, "id", inst.id, "reason", reason)
	switch {
	case inst.up:
	case s.Fault != nil && inst.sent != nil:
		g.full(inst, s.Fault, reason)
	default:
		g.failed(inst, reason)
	}
	inst.sent = nil
	g.condemn(inst, s.Detail)
}
