package fleet

// backlog is how many names wait at most while creations are held back. The host
// asks again every two seconds for what it still needs.
const backlog = 10

// Increase reserves up to n names, has their servers created in the background
// and returns how many it reserved, without waiting.
func (g *Group) Increase(n int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	reserved := max(min(n, g.room()), 0)
	for range reserved {
		g.seq++
		g.reserve(g.seq)
	}
	return reserved
}

// room is how many names may be reserved now.
func (g *Group) room() int {
	if g.closing {
		return 0
	}
	room := g.settings.MaxSize - g.count((*instance).holdsSlot) - len(g.others)
	if g.gate.Holding(g.held()) {
		waiting := g.count(func(i *instance) bool { return i.stage == queued && !i.sending })
		room = min(room, backlog-waiting)
	}
	return room
}

// reserve adds a queued instance under a fresh name.
func (g *Group) reserve(seq int) *instance {
	name := newName(g.settings.Name, g.settings.Suffix())
	for g.instances[name] != nil || !g.tombstones[name].until.IsZero() {
		name = newName(g.settings.Name, g.settings.Suffix())
	}
	inst := &instance{name: name, seq: seq, stage: queued, reserved: g.now()}
	g.instances[name] = inst
	g.plan(inst, creation, 0)
	return inst
}

// Decrease has the servers of these names deleted in the background, with
// retries until they are gone, and returns the names that it took on: all of
// them, for a name that the group does not have needs no deletion.
func (g *Group) Decrease(names []string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := make([]string, 0, len(names))
	for _, name := range names {
		taken = append(taken, name)
		inst, ok := g.instances[name]
		if !ok {
			// Should its server turn up after all, it is deleted.
			g.tombstones[name] = tombstone{until: g.now().Add(tombstoneLife)}
			continue
		}
		g.release(inst)
	}
	return taken
}

// release gives up an instance, whatever stage it is in.
func (g *Group) release(inst *instance) {
	switch inst.stage {
	case queued:
		if inst.sending {
			inst.doomed = true
		} else {
			g.bury(inst)
		}
	case doubtful, lost:
		inst.doomed = true
	case live:
		g.condemn(inst, "requested by the runner")
	case condemned, kept, quarantined, gone:
	}
}
