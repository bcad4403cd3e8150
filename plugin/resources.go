package plugin

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
)

// resources are what a configuration names, found in the cloud.
type resources struct {
	flavor         cloud.Flavor
	image          cloud.Image
	networks       []cloud.Resource
	addressNetwork string // name
	securityGroups []cloud.Resource
	serverGroup    cloud.Resource
	userData       []byte
}

// resolve finds everything that a configuration names and reports all that it
// does not find. The look-ups run side by side. Errors other than "not found"
// are the cloud's, and the first of them stands for all.
func resolve(ctx context.Context, client *cloud.Client, config Config, logger hclog.Logger) (resources, error) {
	r := resolver{client: client, config: config}
	lookups := []func(context.Context, *problems) error{
		r.userData, r.flavor, r.image, r.networks, r.securityGroups, r.serverGroup, r.keyPair,
	}
	found, failed := make([]problems, len(lookups)), make([]error, len(lookups))
	var pool sync.WaitGroup
	for i, lookup := range lookups {
		pool.Go(func() {
			defer guard("resolve", logger, &failed[i])
			failed[i] = lookup(ctx, &found[i])
		})
	}
	pool.Wait()
	for _, err := range failed {
		if err != nil {
			return resources{}, err
		}
	}
	all := slices.Concat(found...)
	r.fit(&all)
	r.addressNetwork(&all)
	return r.found, all.err()
}

// resolver is where look-ups leave what they find, each in fields of its own.
type resolver struct {
	client *cloud.Client
	config Config
	found  resources
}

// note keeps a problem with a setting, and passes other errors on.
func (p *problems) note(key string, err error) error {
	if errors.Is(err, cloud.ErrNotFound) || errors.Is(err, cloud.ErrAmbiguous) || errors.Is(err, cloud.ErrInvalid) {
		p.add(key, "%s", err.Error())
		return nil
	}
	return err
}

func (r *resolver) userData(_ context.Context, wrong *problems) error {
	data, problem := r.config.Server.loadUserData()
	if problem != nil {
		*wrong = append(*wrong, *problem)
	}
	r.found.userData = data
	return nil
}

func (r *resolver) flavor(ctx context.Context, wrong *problems) (err error) {
	r.found.flavor, err = r.client.ResolveFlavor(ctx, r.config.Server.Flavor)
	return wrong.note("server.flavor", err)
}

func (r *resolver) image(ctx context.Context, wrong *problems) (err error) {
	r.found.image, err = r.client.ResolveImage(ctx, r.config.Server.Image)
	return wrong.note("server.image", err)
}

func (r *resolver) networks(ctx context.Context, wrong *problems) error {
	for _, name := range r.config.Server.Networks {
		found, err := r.client.ResolveNetwork(ctx, name)
		if err := wrong.note("server.networks", err); err != nil {
			return err
		}
		r.found.networks = append(r.found.networks, found)
	}
	return nil
}

func (r *resolver) securityGroups(ctx context.Context, wrong *problems) error {
	for _, name := range r.config.Server.SecurityGroups {
		found, err := r.client.ResolveSecurityGroup(ctx, name)
		if err := wrong.note("server.security_groups", err); err != nil {
			return err
		}
		r.found.securityGroups = append(r.found.securityGroups, found)
	}
	return nil
}

func (r *resolver) serverGroup(ctx context.Context, wrong *problems) (err error) {
	if r.config.Server.ServerGroup == "" {
		return nil
	}
	r.found.serverGroup, err = r.client.ResolveServerGroup(ctx, r.config.Server.ServerGroup)
	return wrong.note("server.server_group", err)
}

func (r *resolver) keyPair(ctx context.Context, wrong *problems) error {
	if r.config.Server.KeyName == "" {
		return nil
	}
	return wrong.note("server.key_name", r.client.CheckKeyPair(ctx, r.config.Server.KeyName))
}

// fit holds what the image needs against what servers get. Nova does the same,
// and refuses every creation. What was not found is wrong already.
func (r *resolver) fit(wrong *problems) {
	image, flavor, volume := r.found.image, r.found.flavor, r.config.Server.VolumeSize
	if volume > 0 && volume < image.MinDisk {
		wrong.add("server.volume_size", "is %d GiB, but the image needs %d", volume, image.MinDisk)
	}
	if flavor.ID == "" {
		return
	}
	if volume == 0 && flavor.Disk > 0 && flavor.Disk < image.MinDisk {
		wrong.add("server.flavor", "%s has a disk of %d GiB, but the image needs %d; take a larger flavor or set server.volume_size",
			flavor.Name, flavor.Disk, image.MinDisk)
	}
	if flavor.RAM < image.MinRAM {
		wrong.add("server.flavor", "%s has %d MiB of RAM, but the image needs %d", flavor.Name, flavor.RAM, image.MinRAM)
	}
}

// addressNetwork finds the network to connect on among those of the servers,
// whichever of the two is given by name and whichever by ID.
func (r *resolver) addressNetwork(wrong *problems) {
	wanted := r.config.AddressNetwork
	if wanted == "" && len(r.found.networks) == 1 {
		r.found.addressNetwork = r.found.networks[0].Name
		return
	}
	i := slices.IndexFunc(r.found.networks, func(n cloud.Resource) bool { return n.ID == wanted || n.Name == wanted })
	if i >= 0 {
		r.found.addressNetwork = r.found.networks[i].Name
	} else if wanted != "" {
		wrong.add("address_network", "must be one of server.networks, not %q", wanted)
	}
}
