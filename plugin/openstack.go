package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/go-hclog"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// openstack is the cloud that a group of package fleet works with: it turns
// Nova's servers, states and errors into the group's.
type openstack struct {
	client  *cloud.Client
	config  Config
	found   resources
	images  *imageBook
	address addressChoice
}

func newOpenStack(client *cloud.Client, config Config, found resources, logger hclog.Logger) *openstack {
	return &openstack{
		client:  client,
		config:  config,
		found:   found,
		images:  newImageBook(client, config.Server.Image, found.image, slogger(logger)),
		address: addressChoice{network: found.addressNetwork, ipv6: config.AddressFamily == "ipv6"},
	}
}

// List returns the servers that carry the group's tag.
func (o *openstack) List(ctx context.Context) ([]fleet.Server, error) {
	o.client.RereadCredentials(ctx)
	listed, err := o.client.ListServers(ctx, o.config.Tag)
	if errors.Is(err, cloud.ErrUnfinished) {
		return nil, fmt.Errorf("%w: %w", fleet.ErrUnfinished, err)
	}
	if err != nil {
		return nil, err
	}
	servers := make([]fleet.Server, 0, len(listed))
	for _, s := range listed {
		server := o.server(s)
		if server.Owned {
			o.images.learn(ctx, server.Image)
		}
		servers = append(servers, server)
	}
	return servers, nil
}

// Get returns one server.
func (o *openstack) Get(ctx context.Context, id string) (fleet.Server, error) {
	s, err := o.client.GetServer(ctx, id)
	if err != nil {
		return fleet.Server{}, fleetError(err)
	}
	return o.server(s), nil
}

// Find returns the servers of this name.
func (o *openstack) Find(ctx context.Context, name string) ([]fleet.Server, error) {
	found, err := o.client.FindServers(ctx, o.config.Tag, name)
	if err != nil {
		return nil, err
	}
	servers := make([]fleet.Server, 0, len(found))
	for _, s := range found {
		servers = append(servers, o.server(s))
	}
	return servers, nil
}

// Create asks for one server.
func (o *openstack) Create(ctx context.Context, name string) (fleet.Created, error) {
	image, err := o.images.newest(ctx)
	if err != nil {
		return fleet.Created{}, createError(err)
	}
	accepted, err := o.client.CreateServer(ctx, o.spec(name, image.ID))
	if err != nil {
		return fleet.Created{}, createError(err)
	}
	return fleet.Created{ID: accepted.ID, Request: accepted.RequestID}, nil
}

// spec describes one server of the group.
func (o *openstack) spec(name, image string) cloud.ServerSpec {
	server := o.config.Server
	metadata := maps.Clone(server.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[ownerKey] = o.config.Tag
	return cloud.ServerSpec{
		Name: name, Flavor: o.found.flavor.ID, Image: image,
		Networks: o.found.networkIDs(), SecurityGroups: idsOf(o.found.securityGroups),
		KeyName: server.KeyName, UserData: o.found.userData, ConfigDrive: server.ConfigDrive,
		Tags: append([]string{o.config.Tag}, server.Tags...), Metadata: metadata,
		AvailabilityZone: server.AvailabilityZone, ServerGroup: o.found.serverGroup.ID,
		VolumeSize: server.VolumeSize, VolumeType: server.VolumeType,
	}
}

func idsOf(found []cloud.Resource) []string {
	ids := make([]string, 0, len(found))
	for _, r := range found {
		ids = append(ids, r.ID)
	}
	return slices.Clip(ids)
}

// Delete asks for a deletion.
func (o *openstack) Delete(ctx context.Context, id string) error {
	return fleetError(o.client.DeleteServer(ctx, id))
}

// ForceDelete asks for a deletion in any state.
func (o *openstack) ForceDelete(ctx context.Context, id string) error {
	return fleetError(o.client.ForceDeleteServer(ctx, id))
}

// Unlock lets a locked server be deleted.
func (o *openstack) Unlock(ctx context.Context, id string) error {
	return fleetError(o.client.UnlockServer(ctx, id))
}

// server turns one of Nova's servers into the group's.
func (o *openstack) server(s cloud.Server) fleet.Server {
	server := fleet.Server{
		ID: s.ID, Name: s.Name, Created: s.Created, Image: s.Image,
		Owned:  s.Metadata[ownerKey] == o.config.Tag,
		Phase:  phaseOf(s.Status, s.TaskState, s.Fault),
		Detail: detailOf(s),
	}
	server.Addresses = make([]fleet.Address, 0, len(s.Addresses))
	for _, a := range s.Addresses {
		server.Addresses = append(server.Addresses, fleet.Address(a))
	}
	if server.Phase == fleet.Running {
		if internal, _ := o.address.pick(server.Addresses); internal == "" {
			// Without an address the runner would connect to itself.
			server.Phase = fleet.Building
			server.Detail += ", without an address to connect to"
		}
	}
	if server.Phase == fleet.Broken && s.Fault != "" {
		server.Fault = capacityError(cloud.FaultKind(s.Fault))
		if server.Fault != nil {
			server.Detail += " (" + server.Fault.Error() + ")"
		}
	}
	return server
}

// fleetError adds the meaning that a group gives to an error about one server.
func fleetError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cloud.ErrNotFound):
		return fmt.Errorf("%w: %w", fleet.ErrGone, err)
	case errors.Is(err, cloud.ErrConflict):
		return fmt.Errorf("%w: %w", fleet.ErrLocked, err)
	case errors.Is(err, cloud.ErrForbidden):
		return fmt.Errorf("%w: %w", fleet.ErrForbidden, err)
	case cloud.Unanswered(err):
		return fmt.Errorf("%w: %w", fleet.ErrUnanswered, err)
	default:
		return err
	}
}

// createError adds the meaning that a group gives to a failed creation. A
// conflict or a thing not found is not about the server here.
func createError(err error) error {
	switch {
	case cloud.Doubtful(err):
		return fmt.Errorf("%w: %w", fleet.ErrDoubtful, err)
	case errors.Is(err, cloud.ErrTransient), errors.Is(err, cloud.ErrUnauthorized):
		return fmt.Errorf("%w: %w", fleet.ErrBusy, err)
	}
	if full := capacityError(err); full != nil {
		return fmt.Errorf("%w: %w", full, err)
	}
	return err
}

// capacityError returns what a lack of room is called by a group; nil for any
// other error.
func capacityError(err error) error {
	switch {
	case errors.Is(err, cloud.ErrQuota):
		return fleet.ErrQuota
	case errors.Is(err, cloud.ErrNoHost):
		return fleet.ErrNoRoom
	default:
		return nil
	}
}
