package fleet

// Increase reserves up to n names, has their servers created in the background
// and returns how many it reserved, without waiting: 0 during a pause, 1 when
// a single server may probe whether the cloud has recovered.
func (g *Group) Increase(n int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	reserved := min(n, g.room())
	for range reserved {
		g.reserve()
	}
	if reserved > 0 {
		g.kick()
	}
	return max(reserved, 0)
}

// room is how many names may be reserved now.
func (g *Group) room() int {
	if g.closing {
		return 0
	}
	held, unborn := 0, 0
	for _, inst := range g.instances {
		if inst.stage != quarantined && inst.stage != gone {
			held++
		}
		if inst.stage == queued || inst.starting() && inst.epoch == g.pace.Epoch() {
			unborn++
		}
	}
	room := g.settings.MaxSize - held
	if limit := g.pace.Limit(g.now()); limit >= 0 {
		// What waits already comes first.
		room = min(room, limit-unborn)
	}
	return max(room, 0)
}

// reserve adds a queued instance under a fresh name.
func (g *Group) reserve() {
	name := newName(g.settings.Name)
	for g.instances[name] != nil || !g.tombstones[name].until.IsZero() {
		name = newName(g.settings.Name)
	}
	now := g.now()
	g.seq++
	g.instances[name] = &instance{name: name, seq: g.seq, stage: queued, reserved: now, due: now}
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
	g.kick()
	return taken
}

// release gives up an instance, whatever stage it is in.
func (g *Group) release(inst *instance) {
	switch inst.stage {
	case queued:
		if inst.busy {
			inst.doomed = true
		} else {
			g.bury(inst)
		}
	case doubtful:
		inst.doomed = true
	case live:
		g.condemn(inst, "requested by the runner")
	case condemned, quarantined, gone:
	}
}
