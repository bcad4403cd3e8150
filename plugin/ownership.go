package plugin

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/peers"
)

const (
	// orphanWait is how long a start waits for the plugin of a runner that was
	// killed to notice that.
	orphanWait = 3 * time.Second
	orphanLook = 100 * time.Millisecond
	// clockDoubt is how far the two clocks may differ unnoticed: a server that a
	// process on another machine made so soon after the start may be older.
	clockDoubt = 5 * time.Second
	// lateCreation is how long the cloud may take to make what a process of this
	// machine asked for before it ended.
	lateCreation = 2 * time.Minute
	// knownFor is how long what is known of a process is not looked up again.
	knownFor = time.Second
)

// ownership tells the servers of this process from those of other processes that
// serve the same group: after a runner's token was changed, the runner has two
// processes for it, and the jobs of the first go on.
type ownership struct {
	folder peers.Folder
	self   peers.Process
	log    hclog.Logger

	mu     sync.Mutex
	member *peers.Member
	seen   map[string]peers.Process // that were alive at a time when this process was
	known  map[string]knownProcess
	failed string // the last error of keeping the lock that was logged
}

type knownProcess struct {
	process peers.Process
	state   peers.State
	until   time.Time
}

// claim joins the processes that serve a group in a place.
func claim(ctx context.Context, config Config, place string, logger hclog.Logger) (*ownership, error) {
	path := cmp.Or(config.LockDir, peers.Default())
	folder, err := peers.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the lock that tells other processes of this one: %w; set lock_dir to a folder that only the runner's user can write to", err)
	}
	o := &ownership{folder: folder, log: logger, self: peers.Self(groupKey(config, place)), seen: map[string]peers.Process{}, known: map[string]knownProcess{}}
	o.awaitOrphans(ctx)
	o.self.Started = time.Now()
	if o.member, err = folder.Join(o.self, o.self.Started); err != nil {
		return nil, fmt.Errorf("the lock that tells other processes of this one: %w; set lock_dir to a folder whose file system has locks", err)
	}
	return o, nil
}

// groupKey is what tells a group from all others.
func groupKey(config Config, place string) string {
	return strings.Join([]string{place, config.Tag, config.Name}, "\n")
}

// awaitOrphans waits a moment for processes of other runners to end. The plugin of
// a runner that was killed does so within seconds, and its servers are then found
// with the first listing, as those of any process that has ended.
func (o *ownership) awaitOrphans(ctx context.Context) {
	deadline := time.After(orphanWait)
	for {
		alive, err := o.folder.Of(o.self.Group)
		if err != nil || !hasOrphan(alive, o.self) {
			return
		}
		select {
		case <-time.After(orphanLook):
		case <-deadline:
			return
		case <-ctx.Done():
			return
		}
	}
}

func hasOrphan(alive []peers.Process, self peers.Process) bool {
	for _, p := range alive {
		if !p.SameRunner(self) {
			return true
		}
	}
	return false
}

// mark is what servers say of this process.
func (o *ownership) mark() string {
	const most = 200
	return o.self.Generation + " " + o.self.Host[:min(len(o.self.Host), most)]
}

// Of implements fleet.Peers.
func (o *ownership) Of(s fleet.Server) fleet.Peer {
	generation, host, _ := strings.Cut(s.Process, " ")
	if generation == o.self.Generation {
		return fleet.Peer{}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	process, state := o.look(generation)
	before, seen := o.seen[generation]
	switch {
	case state == peers.Alive:
		o.seen[generation] = process
		return fleet.Peer{Standing: fleet.Others, Name: process.String(), Expected: process.SameRunner(o.self)}
	case seen:
		return o.ended(before)
	case state == peers.Dead || !o.younger(s.Created, host):
		return fleet.Peer{}
	default:
		// A process that nothing is known of made it while this one was at work.
		return fleet.Peer{Standing: fleet.Others, Name: elsewhere(host)}
	}
}

// ended judges a process that ended while this one was at work. Where its runner
// lives, so may the jobs on its servers.
func (o *ownership) ended(p peers.Process) fleet.Peer {
	if p.RunnerGone() {
		return fleet.Peer{Standing: fleet.Left, Name: p.String()}
	}
	return fleet.Peer{Standing: fleet.Others, Name: p.String() + ", ended; its servers stay until its runner restarts", Expected: p.SameRunner(o.self)}
}

// younger reports whether a server was made while this process was at work, and
// not by one that ended before.
func (o *ownership) younger(created time.Time, host string) bool {
	slack := clockDoubt
	if host == o.self.Host {
		slack = lateCreation
	}
	return created.After(o.self.Started.Add(slack))
}

// elsewhere names a process of which only its servers are known.
func elsewhere(host string) string {
	if host == "" {
		return "a process that does not say where it runs"
	}
	return "a process on " + host
}

// look asks the folder, and remembers the answer for a moment.
func (o *ownership) look(generation string) (peers.Process, peers.State) {
	known, ok := o.known[generation]
	if now := time.Now(); !ok || now.After(known.until) {
		known.process, known.state = o.folder.Look(generation)
		known.until = now.Add(knownFor)
		o.known[generation] = known
	}
	return known.process, known.state
}

// renew keeps the lock where programs clean temporary folders.
func (o *ownership) renew() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.known)
	err := o.member.Renew(time.Now())
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	if reason != "" && reason != o.failed {
		o.log.Warn("the lock that tells other processes of this one cannot be kept; another process of this group would take its servers", "reason", reason)
	}
	o.failed = reason
}

// leave lets other processes know that this one has ended.
func (o *ownership) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.member.Leave(); err != nil {
		o.log.Debug("leaving the group", "reason", err.Error())
	}
}

// States of the process that made a server, in lists.
const (
	processAlive   = "alive"
	processEnded   = "ended"
	processUnknown = "unknown"
)

// describeProcess says who made a server, and whether that process lives.
func (s *GroupServer) describeProcess(folder peers.Folder, mark string) {
	generation, host, _ := strings.Cut(mark, " ")
	process, state := folder.Look(generation)
	s.Process, s.own = process.String(), process.IsSelf()
	switch state {
	case peers.Alive:
		s.ProcessState = processAlive
	case peers.Dead:
		s.ProcessState = processEnded
	case peers.Unknown:
		s.Process, s.ProcessState = elsewhere(host), processUnknown
	}
}
