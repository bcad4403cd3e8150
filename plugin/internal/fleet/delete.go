package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/backoff"
)

const (
	// deleteRetry is the pause between two attempts to delete a server, deleteAgain
	// that after an accepted one which had no effect, and firstRetry and longestRetry
	// bound that after one which the cloud did not answer.
	deleteRetry  = time.Minute
	deleteAgain  = 5 * time.Second
	firstRetry   = time.Second
	longestRetry = 8 * time.Second
	// forceWindow is how long forced deletions are tried before a server is
	// quarantined.
	forceWindow = 5 * time.Minute
	// quarantineRetry is the pause between attempts on a quarantined server.
	quarantineRetry = 10 * time.Minute
)

// deletionHabits are what the cloud is known to do with deletions.
type deletionHabits struct {
	keeps     bool      // deleted servers, so that they can be restored
	forbids   bool      // to force deletions
	confirmed time.Time // when a GET last proved that a deleted server is gone
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
	g.plan(inst, deletion, 0)
}

// remove makes one attempt to delete a server.
func (g *Group) remove(ctx context.Context, inst *instance, ticket *backoff.Request) {
	forced, err := g.tryRemove(ctx, inst)
	g.mu.Lock()
	defer g.mu.Unlock()
	inst.forced = inst.forced || forced
	if errors.Is(err, ErrUnanswered) {
		g.deletes.Struggled(g.now(), ticket)
	} else {
		g.deletes.Took(ticket)
	}
	inst.removing = false
	inst.attempts++
	if inst.stage == condemned || inst.stage == quarantined || inst.stage == kept {
		g.removed(inst, forced, err) // or a listing proved it gone meanwhile
	}
}

// removed applies the outcome of an attempt to delete a server.
func (g *Group) removed(inst *instance, forced bool, err error) {
	switch {
	case errors.Is(err, ErrGone) && g.newborn(inst):
		g.plan(inst, deletion, g.vary(confirmPause))
	case errors.Is(err, ErrGone) && g.now().Sub(inst.born) < birthGrace:
		// Nova may not find a young server that it lists. The next listing tells.
		inst.accepted = g.now()
		g.plan(inst, deletion, g.vary(confirmPause))
	case errors.Is(err, ErrGone):
		g.bury(inst)
	case inst.stage == kept && (forced || g.deletion.forbids):
		g.bury(inst)
	case inst.stage == kept && err == nil:
		// It was deleted before it was known that the cloud keeps it.
		g.plan(inst, deletion, 0)
	default:
		g.retryRemoval(inst, err)
	}
}

// retryRemoval plans the next attempt. An accepted deletion is repeated, too:
// some clouds accept it and do nothing.
func (g *Group) retryRemoval(inst *instance, err error) {
	g.complain(inst, err)
	pause := deleteRetry
	switch {
	case err == nil:
		inst.accepted, inst.seen = g.now(), true
	case errors.Is(err, ErrUnanswered):
		if g.listed.Before(inst.tried) {
			// The time in which the cloud could not be asked does not count. It does
			// while the cloud answers and fails with this server only.
			inst.deathBegan = inst.deathBegan.Add(g.now().Sub(inst.tried))
		}
		pause = min(firstRetry<<min(inst.attempts-1, 10), longestRetry)
	}
	if g.closing && err != nil {
		pause = min(pause, longestRetry) // there is no later
	}
	inst.tried = g.now()
	switch {
	case inst.stage == quarantined:
		pause = quarantineRetry
	case inst.stage == kept:
	case g.overdue(inst) > forceWindow:
		g.quarantine(inst)
		pause = quarantineRetry
	}
	g.plan(inst, deletion, g.vary(pause))
}

// observeDying repeats a deletion that the cloud accepted and that had no effect.
func (g *Group) observeDying(inst *instance, s Server) {
	ineffective := s.Phase == Running || s.Phase == Building || s.Phase == Broken
	if inst.stage != condemned || inst.accepted.IsZero() || !ineffective {
		return
	}
	if g.now().Sub(inst.accepted) < min(deleteAgain<<min(inst.attempts-1, 10), deleteRetry) {
		return // listings lag
	}
	inst.accepted = time.Time{}
	g.plan(inst, deletion, 0)
}

// tryRemove deletes, unlocks what is locked, and forces what is overdue or what
// the cloud would keep. It returns whether the cloud takes a forced deletion on.
func (g *Group) tryRemove(ctx context.Context, inst *instance) (forced bool, err error) {
	g.mu.Lock()
	id, must := inst.id, inst.stage == kept
	force := !g.deletion.forbids && (must || g.deletion.keeps || g.overdue(inst) > 0)
	g.mu.Unlock()
	if force {
		err := g.cloud.ForceDelete(ctx, id)
		if errors.Is(err, ErrForbidden) {
			g.cannotForce(err)
		}
		if err == nil || errors.Is(err, ErrGone) || must {
			return err == nil, err
		}
	}
	if must {
		return false, nil // the cloud deletes it when its time is over
	}
	err = g.cloud.Delete(ctx, id)
	if !errors.Is(err, ErrLocked) {
		return false, err
	}
	if unlockErr := g.cloud.Unlock(ctx, id); unlockErr != nil {
		return false, errors.Join(err, unlockErr)
	}
	return false, g.cloud.Delete(ctx, id)
}

// keep notes that the cloud keeps a deleted server. From now on deletions are
// forced, which keeps nothing; the server holds no slot, for it runs nothing.
func (g *Group) keep(inst *instance) {
	if !g.deletion.keeps {
		g.deletion.keeps = true
		g.log.Info("the cloud keeps deleted servers so that they can be restored; forcing deletions", "server", inst.name, "id", inst.id)
	}
	if inst.stage == kept {
		return
	}
	inst.stage = kept
	inst.server = Server{}
	inst.attempts = 0
	g.plan(inst, deletion, 0)
}

// cannotForce notes that this user may not force deletions.
func (g *Group) cannotForce(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.deletion.forbids {
		g.deletion.forbids = true
		g.log.Warn("deletions cannot be forced with these credentials; deleted servers go when the cloud reclaims them", "reason", err.Error())
	}
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

// quarantine takes the slot of a server that cannot be deleted: the host forgets
// it, while the group keeps watching and retrying.
func (g *Group) quarantine(inst *instance) {
	inst.stage = quarantined
	reason := inst.complain
	if reason == "" {
		reason = "the cloud accepts its deletion and does nothing"
	}
	g.log.Error("server cannot be deleted and was quarantined; delete it by hand",
		"server", inst.name, "id", inst.id, "reason", reason, "since", inst.deathBegan.UTC().Format(time.RFC3339))
}
