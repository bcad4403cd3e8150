package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// ErrProcessAlive reports servers of a process that still serves the group.
var ErrProcessAlive = errors.New("the process that made them still runs")

// Leftovers returns the servers that [Cleanup] would delete: those that are the
// group's by name and owner mark, and no others. It changes nothing. Servers of a
// process that is known to run are left out, with an error that wraps
// [ErrProcessAlive].
func Leftovers(ctx context.Context, config Config, opts ...Option) ([]GroupServer, error) {
	o, err := open(ctx, config, opts)
	if err != nil {
		return nil, err
	}
	defer o.client.Close()
	return o.leftovers(ctx)
}

// Cleanup deletes the servers of a group, for when its runner is gone. It
// returns those whose deletion the cloud took on; the error joins those of the
// others, [ErrProcessAlive] included.
func Cleanup(ctx context.Context, config Config, opts ...Option) ([]GroupServer, error) {
	o, err := open(ctx, config, opts)
	if err != nil {
		return nil, err
	}
	defer o.client.Close()
	ours, spared := o.leftovers(ctx)
	if spared != nil && !errors.Is(spared, ErrProcessAlive) {
		return nil, spared
	}
	deleted := make([]GroupServer, 0, len(ours))
	failed := []error{spared}
	for _, s := range ours {
		if err := o.deleteNow(ctx, s.ID); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.Name, err))
			continue
		}
		deleted = append(deleted, s)
	}
	return deleted, errors.Join(failed...)
}

func (o *openstack) leftovers(ctx context.Context) ([]GroupServer, error) {
	listed, err := o.listed(ctx)
	if err != nil {
		return nil, err
	}
	var ours []GroupServer
	spared := map[string]int{} // by process
	for _, s := range listed {
		switch {
		case s.State == Foreign:
		case s.ProcessState == processAlive && !s.own: // who calls this decides about its own
			spared[s.Process]++
		default:
			ours = append(ours, s)
		}
	}
	var alive []error
	for _, process := range slices.Sorted(maps.Keys(spared)) {
		alive = append(alive, fmt.Errorf("servers not deleted: %d: %w: %s; stop its runner first", spared[process], ErrProcessAlive, process))
	}
	return ours, errors.Join(alive...)
}

// deleteNow deletes a server, unlocking it if need be.
func (o *openstack) deleteNow(ctx context.Context, id string) error {
	err := o.Delete(ctx, id)
	if errors.Is(err, fleet.ErrLocked) {
		if err := o.Unlock(ctx, id); err != nil {
			return err
		}
		err = o.Delete(ctx, id)
	}
	if errors.Is(err, fleet.ErrGone) {
		return nil
	}
	return err
}
