package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/backoff"
)

const (
	// createRetry is the pause until a creation that was certainly not made is sent
	// again; twice that when it was not the first time. The gate sees to it that a
	// group does not do this all day.
	createRetry = time.Second
)

// create sends the creation of one reserved name.
func (g *Group) create(ctx context.Context, inst *instance, sent *backoff.Request) {
	created, err := g.cloud.Create(ctx, inst.name)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answered(inst, sent, created, err)
}

// answered applies the outcome of a creation. Each outcome moves one part of the
// gate.
func (g *Group) answered(inst *instance, sent *backoff.Request, created Created, err error) {
	inst.sending = false
	if err == nil && inst.stage == queued {
		g.accept(inst, created)
	}
	if err == nil || inst.stage != queued {
		// A listing may have been faster than the answer.
		if g.gate.Took(sent, g.borne()) {
			g.log.Info("the cloud takes creations again", "server", inst.name)
		}
		return
	}
	switch {
	case errors.Is(err, ErrDoubtful):
		g.struggled(inst, sent, err)
		g.doubt(inst, err)
	case errors.Is(err, ErrThrottled):
		g.gate.Throttled(sent)
		g.gate.Undecided(g.now(), sent)
		g.requeue(inst, 0)
	case errors.Is(err, ErrBusy):
		g.struggled(inst, sent, err)
		g.gate.Undecided(g.now(), sent)
		inst.attempts++
		g.requeue(inst, g.vary(createRetry*time.Duration(min(inst.attempts, 2))))
	case errors.Is(err, ErrQuota), errors.Is(err, ErrNoRoom):
		g.full(inst, err, err.Error())
		g.requeue(inst, 0)
	default:
		if pause, began := g.gate.Refused(g.now(), sent); began {
			g.log.Warn("scale-up paused", "server", inst.name, "reason", err.Error(), "pause", pause.Round(time.Second).String())
		}
		g.requeue(inst, 0)
	}
}

// struggled notes that the API did not take a creation, and says so when it took
// none for a while.
func (g *Group) struggled(inst *instance, sent *backoff.Request, err error) {
	if g.gate.Struggled(g.now(), sent) {
		g.log.Warn("the cloud takes no creations, trying again until it does", "server", inst.name, "reason", err.Error())
		return
	}
	g.log.Debug("creation not taken", "server", inst.name, "reason", err.Error())
}

// full notes that the cloud has no room, and says so once per ceiling.
func (g *Group) full(inst *instance, kind error, reason string) {
	first := backoff.RoomPause
	if errors.Is(kind, ErrQuota) {
		first = backoff.QuotaPause
	}
	borne := g.borne()
	if pause, news := g.gate.Full(g.now(), inst.sent, borne, first); news {
		g.log.Warn("scale-up limited, the cloud has no room for more servers", "server", inst.name, "servers", borne,
			"reason", reason, "pause", pause.Round(time.Second).String())
	}
}

// failed notes that a server did not come up for a reason of its own.
func (g *Group) failed(inst *instance, reason string) {
	if inst.sent == nil {
		return
	}
	if pause, began := g.gate.Failed(g.now(), inst.sent); began {
		g.log.Warn("scale-up paused, servers do not come up", "server", inst.name, "reason", reason, "pause", pause.Round(time.Second).String())
	}
	inst.sent = nil
}

// came notes that a server came up.
func (g *Group) came(inst *instance) {
	inst.up = true
	g.log.Info("server is up", "server", inst.name, "id", inst.id, "after", g.now().Sub(inst.born).Round(time.Millisecond).String())
	if inst.sent == nil {
		return
	}
	ended, dropped := g.gate.Came(inst.sent, g.borne())
	inst.sent = nil
	if ended {
		g.log.Info("scale-up resumed", "server", inst.name)
	}
	if dropped {
		g.log.Info("scale-up no longer limited", "server", inst.name)
	}
}

// requeue has a creation sent again under the name that the host knows. After
// the build timeout [Group.Update] gives it up.
func (g *Group) requeue(inst *instance, after time.Duration) {
	if inst.doomed || g.closing {
		g.bury(inst)
		return
	}
	g.plan(inst, creation, after)
}

// accept notes that the cloud took a creation on.
func (g *Group) accept(inst *instance, created Created) {
	inst.id, inst.request = created.ID, created.Request
	inst.stage = live
	inst.born, inst.sure = g.now(), g.now()
	inst.unplan()
	g.log.Info("server accepted", "server", inst.name, "id", inst.id)
	if inst.doomed {
		g.condemn(inst, "requested by the runner")
	}
}
