package fleet

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Pace holds creation back after failures; plugin/internal/backoff has one.
// A group calls it with its lock held.
type Pace interface {
	// Epoch numbers the stretch between two pauses.
	Epoch() int
	// Limit is how many creations may be under way: -1 any, 0 none.
	Limit(now time.Time) int
	// Fail and Succeed record the outcome of a creation started in epoch.
	Fail(now time.Time, epoch int) (pause time.Duration, counted bool)
	Succeed(epoch int) (ended bool)
}

// Width bounds the creations under way; plugin/internal/backoff has one. A
// group calls it with its lock held.
type Width interface {
	// Limit is how many creations may be under way, at least one.
	Limit() int
	// Round numbers the stretch between two narrowings.
	Round() int
	// Widen and Narrow record how a creation sent in round was answered. Only
	// one that was under way while no more were allowed widens.
	Widen(round int)
	Narrow(round int)
}

// Settings of a group. All are required.
type Settings struct {
	// Name is the first part of each server's name.
	Name string
	// MaxSize is how many instances the group may hold.
	MaxSize int
	// ParallelDeletes bounds the deletions and lookups under way.
	ParallelDeletes int
	// BuildTimeout is how long a server may take to come up.
	BuildTimeout time.Duration
	// DeleteTimeout is how long a deletion may take before it is forced.
	DeleteTimeout time.Duration
}

// Group is one group of servers. Its methods may be called concurrently.
type Group struct {
	settings Settings
	cloud    Cloud
	log      *slog.Logger
	now      func() time.Time
	wake     chan struct{}

	mu         sync.Mutex
	pace       Pace
	width      Width
	instances  map[string]*instance // by name
	strays     map[string]*instance // doubles of known names, by ID
	tombstones map[string]tombstone // names that may never come back
	foreign    map[string]bool      // IDs that carry the tag but are not ours
	seq        int
	busy       map[kind]int
	closing    bool
}

// New returns an empty group. [Group.Update] fills it with the servers that
// exist, and [Group.Run] does its work.
func New(settings Settings, cloud Cloud, pace Pace, width Width, log *slog.Logger, now func() time.Time) *Group {
	return &Group{
		settings:   settings,
		cloud:      cloud,
		log:        log,
		now:        now,
		wake:       make(chan struct{}, 1),
		pace:       pace,
		width:      width,
		instances:  map[string]*instance{},
		strays:     map[string]*instance{},
		tombstones: map[string]tombstone{},
		foreign:    map[string]bool{},
		busy:       map[kind]int{},
	}
}

// Server returns the last known state of an instance without asking the cloud.
// It returns [ErrNoServer] or [ErrNotRunning] when it cannot take jobs.
func (g *Group) Server(name string) (Server, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	inst, ok := g.instances[name]
	switch {
	case !ok:
		return Server{}, ErrNoServer
	case inst.stage != live || !inst.up:
		return Server{}, ErrNotRunning
	default:
		return inst.server, nil
	}
}

// kick makes Run look for work.
func (g *Group) kick() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// ordered returns all instances, strays last, in the order in which they came.
// The lock must be held.
func (g *Group) ordered() []*instance {
	all := make([]*instance, 0, len(g.instances)+len(g.strays))
	for _, inst := range g.instances {
		all = append(all, inst)
	}
	for _, inst := range g.strays {
		all = append(all, inst)
	}
	slices.SortFunc(all, func(a, b *instance) int { return a.seq - b.seq })
	return all
}

// fail records a failed creation and says so, once per pause.
func (g *Group) fail(inst *instance, reason string) {
	g.width.Narrow(inst.round)
	pause, counted := g.pace.Fail(g.now(), inst.epoch)
	if !counted {
		g.log.Debug("another server of the same round failed", "server", inst.name, "reason", reason)
		return
	}
	g.log.Warn("scale-up paused", "server", inst.name, "reason", reason, "pause", pause.String())
}

// succeed records that a created server came up.
func (g *Group) succeed(inst *instance) {
	if g.pace.Succeed(inst.epoch) {
		g.log.Info("scale-up resumed", "server", inst.name)
	}
}

// bury forgets a server that is proved gone, after one last report.
func (g *Group) bury(inst *instance) {
	inst.stage = gone
	inst.server = Server{}
	if inst.stray {
		delete(g.strays, inst.id)
		if g.instances[inst.name] != nil {
			return // the name belongs to another server, which goes on
		}
	}
	if inst.posted || inst.id != "" {
		g.tombstones[inst.name] = tombstone{since: g.now(), until: g.now().Add(tombstoneLife), id: inst.id}
	}
}

// condemn puts a server into the deletion queue.
func (g *Group) condemn(inst *instance, why string) {
	if inst.stage == condemned || inst.stage == quarantined {
		return
	}
	inst.stage = condemned
	inst.why = why
	inst.attempts = 0
	inst.deathBegan = g.now()
	inst.tried = g.now()
	inst.due = g.now()
	g.kick()
}

// tombstone remembers a name that was given up, and the server that was proved
// gone under it, if there was one, and since when.
type tombstone struct {
	since, until time.Time
	id           string
}

// tombstoneLife is how long a name that was given up may still turn up in a
// listing, for example because a gateway accepted its creation very late.
const tombstoneLife = time.Hour

// Shutdown stops creating, and waits until the creations under way are settled
// as far as they can be and each requested deletion was accepted, or until ctx
// ends. It deletes nothing of its own accord: that is the host's decision.
func (g *Group) Shutdown(ctx context.Context) {
	g.mu.Lock()
	g.closing = true
	for _, inst := range g.instances {
		if inst.stage == queued && !inst.busy {
			g.bury(inst)
		}
	}
	g.mu.Unlock()
	g.kick()
	for !g.settled() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// settled reports whether nothing is under way that a shutdown should wait for.
func (g *Group) settled() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, inst := range g.ordered() {
		if inst.stage == condemned && !inst.accepted || inst.stage == doubtful && inst.doomed || inst.stage == queued && inst.busy {
			return false
		}
	}
	return true
}
