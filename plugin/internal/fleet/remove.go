package fleet

import (
	"context"
	"errors"
	"time"
)

const (
	// deleteRetry is the pause between two attempts to delete a server.
	deleteRetry = time.Minute
	// forceWindow is how long forced deletions are tried before a server is
	// set aside.
	forceWindow = 5 * time.Minute
	// quarantineRetry is the pause between attempts on a server set aside.
	quarantineRetry = 10 * time.Minute
)

// remove makes one attempt to delete a server.
func (g *Group) remove(ctx context.Context, inst *instance) {
	err := g.tryRemove(ctx, inst)
	g.mu.Lock()
	defer g.mu.Unlock()
	inst.attempts++
	if inst.stage != condemned && inst.stage != quarantined {
		return // a listing proved it gone meanwhile
	}
	if errors.Is(err, ErrGone) {
		if g.newborn(inst) {
			inst.due = g.now().Add(confirmPause)
		} else {
			g.bury(inst)
		}
		return
	}
	g.complain(inst, err)
	if errors.Is(err, ErrUnanswered) {
		// The time in which the cloud could not be asked does not count.
		inst.deathBegan = inst.deathBegan.Add(g.now().Sub(inst.tried))
	}
	inst.tried = g.now()
	inst.accepted = inst.accepted || err == nil
	inst.due = g.now().Add(deleteRetry)
	if g.closing && !inst.accepted {
		inst.due = g.now().Add(time.Second) // there is no later
	}
	if inst.stage == quarantined {
		inst.due = g.now().Add(quarantineRetry)
		return
	}
	if g.overdue(inst) > forceWindow {
		g.quarantine(inst)
	}
}

// tryRemove deletes, unlocks what is locked, and forces what is overdue.
func (g *Group) tryRemove(ctx context.Context, inst *instance) error {
	g.mu.Lock()
	force := g.overdue(inst) > 0
	g.mu.Unlock()
	if force {
		err := g.cloud.ForceDelete(ctx, inst.id)
		if err == nil || errors.Is(err, ErrGone) {
			return err
		}
	}
	err := g.cloud.Delete(ctx, inst.id)
	if !errors.Is(err, ErrLocked) {
		return err
	}
	if unlockErr := g.cloud.Unlock(ctx, inst.id); unlockErr != nil {
		return errors.Join(err, unlockErr)
	}
	return g.cloud.Delete(ctx, inst.id)
}

// overdue is how long a deletion has outlasted the delete timeout.
func (g *Group) overdue(inst *instance) time.Duration {
	return g.now().Sub(inst.deathBegan) - g.settings.DeleteTimeout
}

// complain logs a failing deletion once per reason.
func (g *Group) complain(inst *instance, err error) {
	if err == nil {
		return
	}
	if reason := err.Error(); inst.complain != reason {
		inst.complain = reason
		g.log.Warn("deletion failed, retrying", "server", inst.name, "id", inst.id, "reason", reason)
	}
}

// quarantine sets a server aside that cannot be deleted: the host forgets it
// and gets its slot back, while the group keeps watching and retrying.
func (g *Group) quarantine(inst *instance) {
	inst.stage = quarantined
	inst.due = g.now().Add(quarantineRetry)
	g.log.Error("server cannot be deleted and was set aside; delete it by hand",
		"server", inst.name, "id", inst.id, "reason", inst.complain,
		"since", inst.deathBegan.UTC().Format(time.RFC3339))
}
