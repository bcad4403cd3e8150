package fleet

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/backoff"
)

// Settings of a group. All but Suffix and Peers are required.
type Settings struct {
	// Name is the first part of each server's name.
	Name string
	// MaxSize is how many instances the group may hold.
	MaxSize int
	// Creates and Deletes bound the creations and the deletions under way.
	Creates, Deletes Parallel
	// BuildTimeout is how long a server may take to come up.
	BuildTimeout time.Duration
	// DeleteTimeout is how long a deletion may take before it is forced.
	DeleteTimeout time.Duration
	// Random returns numbers from 0 to below 1, which spread waits.
	Random func() float64
	// Suffix returns the last eight characters of a server's name, a to z and 0 to
	// 9; nil for random ones.
	Suffix func() string
	// Peers knows who else serves the group; nil if nobody can.
	Peers Peers
}

// Parallel is how many requests are sent side by side: Start at first, and Most
// once the cloud has shown that it bears more.
type Parallel struct{ Start, Most int }

// Group is one group of servers. Its methods may be called concurrently.
type Group struct {
	settings Settings
	cloud    Cloud
	log      *slog.Logger
	now      func() time.Time
	wake     chan struct{}

	looking sync.Mutex // one listing at a time
	since   time.Time  // when the listing under way began

	mu         sync.Mutex
	gate       *backoff.Gate
	deletes    *backoff.Flow
	agendas    [kinds]agenda
	working    [kinds]int
	instances  map[string]*instance // by name
	strays     map[string]*instance // doubles of known names, by ID
	tombstones map[string]tombstone // names that may never come back
	foreign    map[string]bool      // IDs that carry the tag but are not ours
	others     map[string]bool      // IDs of the group's servers that other processes made
	toldPeers  map[string]bool      // names of those processes
	ghosts     map[string]time.Time // IDs that are listed and do not exist, with the next attempt
	peak       int                  // most instances and tombstones since the maps were made
	deletion   deletionHabits
	asking     int           // GETs planned or under way for servers that listings lack
	quiet      chan struct{} // closed when there are none
	listed     time.Time     // when a listing was last read
	seq        int
	closing    bool
}

// New returns an empty group. [Group.Update] fills it with the servers that
// exist, and [Group.Run] does its work.
func New(settings Settings, cloud Cloud, log *slog.Logger, now func() time.Time) *Group {
	if settings.Suffix == nil {
		settings.Suffix = randomSuffix
	}
	if settings.Peers == nil {
		settings.Peers = alone{}
	}
	return &Group{
		settings:   settings,
		cloud:      cloud,
		log:        log,
		now:        now,
		wake:       make(chan struct{}, 1),
		gate:       backoff.NewGate(settings.Creates.Start, settings.Creates.Most, settings.Random),
		deletes:    backoff.NewFlow(settings.Deletes.Start, settings.Deletes.Most, settings.Random),
		instances:  map[string]*instance{},
		strays:     map[string]*instance{},
		tombstones: map[string]tombstone{},
		foreign:    map[string]bool{},
		ghosts:     map[string]time.Time{},
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
	case inst.stage != live || !inst.up || g.unclear(inst):
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

// all passes each instance and each stray to visit. The lock must be held.
func (g *Group) all(visit func(*instance)) {
	for _, inst := range g.instances {
		visit(inst)
	}
	for _, inst := range g.strays {
		visit(inst)
	}
}

// count counts the instances and strays for which a condition holds.
func (g *Group) count(holds func(*instance) bool) int {
	n := 0
	g.all(func(inst *instance) {
		if holds(inst) {
			n++
		}
	})
	return n
}

// held is how many servers the cloud has or may have, those on their way
// included; borne, how many it is known to have room for.
func (g *Group) held() int  { return g.count((*instance).exists) }
func (g *Group) borne() int { return g.count((*instance).borne) }

// ordered returns the instances in the order in which they came.
func (g *Group) ordered() []*instance {
	all := make([]*instance, 0, len(g.instances))
	for _, inst := range g.instances {
		all = append(all, inst)
	}
	slices.SortFunc(all, func(a, b *instance) int { return a.seq - b.seq })
	return all
}

// bury forgets a server that is proved gone, after one last report.
func (g *Group) bury(inst *instance) {
	posted := inst.id != "" || inst.stage != queued || inst.sending
	inst.stage = gone
	inst.server = Server{}
	inst.unplan()
	g.kick() // a place may be free
	if inst.silent {
		if g.strays[inst.id] == inst {
			delete(g.strays, inst.id)
		} else {
			delete(g.instances, inst.name)
		}
		if g.instances[inst.name] != nil {
			return // the name belongs to another server, which goes on
		}
	}
	if posted {
		g.tombstones[inst.name] = tombstone{since: g.now(), until: g.now().Add(tombstoneLife), id: inst.id}
	}
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

// vary spreads a wait, so that what one event made wait does not come back in
// one moment.
func (g *Group) vary(wait time.Duration) time.Duration {
	return time.Duration(float64(wait) * (0.75 + g.settings.Random()/2))
}
