package fleet

import (
	"context"
	"iter"
	"slices"
	"time"
)

const (
	// settleTime bounds how long a shutdown waits for creations.
	settleTime = 20 * time.Second
	// progressPause is how often a shutdown says what is still to be deleted: the
	// host may end the process at any time, and this is then the last word.
	progressPause = 10 * time.Second
	// namesPerLine bounds a line of the log.
	namesPerLine = 50
)

// Shutdown stops creating, and waits until the creations under way are settled
// as far as they can be in a moment and each requested deletion was accepted, or
// until ctx ends. It deletes nothing of its own accord: that is the host's
// decision. What it leaves undeleted it names.
func (g *Group) Shutdown(ctx context.Context) {
	g.mu.Lock()
	g.closing = true
	for _, inst := range g.instances {
		if inst.stage == queued && !inst.sending {
			g.bury(inst)
		}
	}
	// What waits for its next attempt gets it now.
	g.all(func(inst *instance) {
		if inst.undeleted() && !inst.removing {
			g.plan(inst, deletion, 0)
		}
	})
	g.mu.Unlock()
	settled, progress := time.After(settleTime), time.NewTicker(progressPause)
	defer progress.Stop()
	for patient := true; g.busyWith(patient); {
		select {
		case <-ctx.Done():
			for part := range g.left() {
				g.log.Error("servers were not deleted: delete them by hand, or run `fleeting-plugin-openstack cleanup`", part...)
			}
			return
		case <-settled:
			patient = false
		case <-progress.C:
			for part := range g.left() {
				g.log.Error("servers are still to be deleted", part...)
			}
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// busyWith reports whether a shutdown should go on waiting: for deletions, and
// while it is patient for creations whose servers somebody has to know of.
func (g *Group) busyWith(patient bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count(func(inst *instance) bool {
		creating := inst.stage == queued && inst.sending || inst.stage == doubtful && inst.doomed
		return inst.undeleted() || patient && creating
	}) > 0
}

// undeleted reports whether a deletion was asked for and not accepted yet.
func (i *instance) undeleted() bool { return i.stage == condemned && i.accepted.IsZero() }

// left returns what to log of the servers whose deletion was not accepted, and of
// those of which it is not known whether they exist, for one line after the other.
func (g *Group) left() iter.Seq[[]any] {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	g.all(func(inst *instance) {
		if inst.undeleted() || inst.stage == doubtful || inst.stage == quarantined {
			names = append(names, inst.name)
		}
	})
	slices.Sort(names)
	return func(yield func([]any) bool) {
		for part := range slices.Chunk(names, namesPerLine) {
			if !yield([]any{"left", len(names), "servers", part}) {
				return
			}
		}
	}
}
