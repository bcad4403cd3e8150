package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/peers"
)

// GroupServer is a server that carries the tag of a group.
type GroupServer struct {
	// Name and ID are Nova's.
	Name string `json:"name"`
	ID   string `json:"id"`
	// State is what the plugin would report of it: creating, running or
	// deleting; "foreign" for one that is not the group's by name and owner
	// mark, which the plugin never touches.
	State string `json:"state"`
	// Detail is Nova's status, with the fault of a broken server.
	Detail string `json:"detail"`
	// Created is by this machine's clock, as far as the cloud's is known.
	Created time.Time `json:"created"`
	// Address is where the runner would connect to; empty if unknown.
	Address string `json:"address"`
	// Process is the process of the plugin that made the server, for people, and
	// ProcessState what is known of it: "alive", "ended", or "unknown" for one that
	// ran on another machine, in another container or as another user. Both are
	// empty for foreign servers.
	Process      string `json:"process,omitempty"`
	ProcessState string `json:"process_state,omitempty"`

	own bool // this process made it
}

// Foreign is the State of a server that carries the tag but is not the group's.
const Foreign = "foreign"

// List returns the servers that carry the group's tag, oldest first.
func List(ctx context.Context, config Config, opts ...Option) ([]GroupServer, error) {
	o, err := open(ctx, config, opts)
	if err != nil {
		return nil, err
	}
	defer o.client.Close()
	return o.listed(ctx)
}

func (o *openstack) listed(ctx context.Context) ([]GroupServer, error) {
	servers, err := o.List(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := peers.Read(cmp.Or(o.config.LockDir, peers.Default()))
	if err != nil {
		return nil, fmt.Errorf("lock_dir: %w", err)
	}
	listed := make([]GroupServer, 0, len(servers))
	for _, s := range servers {
		internal, external := pick(s.Addresses, o.config.ipv6())
		address := cmp.Or(external, internal)
		line := GroupServer{
			Name: s.Name, ID: s.ID, State: stateForPeople(s, o.config.Name), Detail: s.Detail, Created: s.Created, Address: address,
		}
		if s.Owned {
			line.describeProcess(folder, s.Process)
		}
		listed = append(listed, line)
	}
	slices.SortStableFunc(listed, func(a, b GroupServer) int { return a.Created.Compare(b.Created) })
	return listed, nil
}

func stateForPeople(s fleet.Server, group string) string {
	if s.Going() && fleet.IsName(group, s.Name) {
		return string(fleet.BeingDeleted) // Nova may show no owner mark any more
	}
	if !s.Owned || !fleet.IsName(group, s.Name) {
		return Foreign
	}
	switch s.Phase {
	case fleet.Running:
		return string(fleet.InUse)
	case fleet.Building:
		return string(fleet.Creating)
	case fleet.Deleting, fleet.Suspect, fleet.Broken, fleet.Kept, fleet.Gone:
		return string(fleet.BeingDeleted)
	case fleet.Unknown:
	}
	return "unknown"
}

// open connects for one command that looks at servers or deletes them: of the
// cloud it needs Keystone and Nova.
func open(ctx context.Context, config Config, opts []Option) (*openstack, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	logger := hclog.NewNullLogger()
	config.Server.VolumeType = "" // what Nova would need for it does not matter here
	client, err := dial(ctx, config, New(opts...).opts, logger)
	if err != nil {
		return nil, err
	}
	return newOpenStack(client, config, logger), nil
}
