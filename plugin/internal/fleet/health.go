package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// unsureGrace is how long the cloud may list servers and say nothing clear of one
// until it gets no more jobs. Those that it has go on.
const unsureGrace = 5 * time.Minute

// unclear reports whether a server may no longer work for all that is known. An
// outage of the whole cloud says nothing of a server.
func (g *Group) unclear(inst *instance) bool { return g.listed.Sub(inst.sure) > unsureGrace }

// freshEnough is how long the last word about a server is believed by a
// health check.
const freshEnough = 2 * time.Second

// Check asks whether a server can still take jobs, with one API call at most.
// It returns an error that wraps [ErrNoServer] or [ErrNotRunning] when it
// cannot. That the question could not be asked is no answer, and no error.
func (g *Group) Check(ctx context.Context, name string) error {
	id, fresh, err := g.checkKnown(name)
	if err != nil || fresh {
		return err
	}
	server, err := g.cloud.Get(ctx, id)
	switch {
	case errors.Is(err, ErrGone):
		return ErrNoServer
	case err != nil:
		return nil //nolint:nilerr // a question that cannot be asked says nothing about the server
	}
	switch server.Phase {
	case Running, Unknown, Suspect, Building:
		// It was up; one that builds again lost its addresses in Nova's cache.
		g.lookedNow(name)
		return nil
	case Broken, Deleting, Kept, Gone:
	}
	return fmt.Errorf("%w: %s", ErrNotRunning, server.Detail)
}

// checkKnown answers from what is known, if it can.
func (g *Group) checkKnown(name string) (id string, fresh bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	inst, ok := g.instances[name]
	switch {
	case !ok || inst.stage == gone:
		return "", false, ErrNoServer
	case inst.stage != live:
		return "", false, fmt.Errorf("%w: %s", ErrNotRunning, inst.why)
	case !inst.up:
		return "", false, fmt.Errorf("%w: not up yet", ErrNotRunning)
	case g.unclear(inst):
		return "", false, fmt.Errorf("%w: the cloud has said nothing clear of it for %s: %s", ErrNotRunning, unsureGrace, inst.words)
	}
	return inst.id, g.now().Sub(inst.looked) < freshEnough, nil
}

func (g *Group) lookedNow(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if inst, ok := g.instances[name]; ok {
		inst.looked = g.now()
	}
}
