package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// Leftovers returns the servers that [Cleanup] would delete: those that are the
// group's by name and owner mark, and no others. It changes nothing.
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
// others.
func Cleanup(ctx context.Context, config Config, opts ...Option) ([]GroupServer, error) {
	o, err := open(ctx, config, opts)
	if err != nil {
		return nil, err
	}
	defer o.client.Close()
	ours, err := o.leftovers(ctx)
	if err != nil {
		return nil, err
	}
	deleted := make([]GroupServer, 0, len(ours))
	var failed []error
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
	return slices.DeleteFunc(listed, func(s GroupServer) bool { return s.State == Foreign }), err
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
