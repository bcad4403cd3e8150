package plugin

import (
	"context"
	"errors"
	"slices"

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
// does not find. Errors other than "not found" end it at once: they are the
// cloud's, and the rest would fail the same way.
func resolve(ctx context.Context, client *cloud.Client, config Config) (resources, error) {
	r := resolver{client: client, config: config}
	steps := []func(context.Context) error{
		r.userData, r.flavor, r.image, r.networks, r.securityGroups, r.serverGroup, r.keyPair, r.addressNetwork,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return resources{}, err
		}
	}
	return r.found, r.problems.err()
}

type resolver struct {
	client   *cloud.Client
	config   Config
	found    resources
	problems problems
}

// note keeps a problem with a setting, and passes other errors on.
func (r *resolver) note(key string, err error) error {
	if errors.Is(err, cloud.ErrNotFound) || errors.Is(err, cloud.ErrAmbiguous) || errors.Is(err, cloud.ErrInvalid) {
		r.problems.add(key, "%s", err.Error())
		return nil
	}
	return err
}

func (r *resolver) userData(context.Context) error {
	data, problem := r.config.Server.loadUserData()
	if problem != nil {
		r.problems = append(r.problems, *problem)
	}
	r.found.userData = data
	return nil
}

func (r *resolver) flavor(ctx context.Context) (err error) {
	r.found.flavor, err = r.client.ResolveFlavor(ctx, r.config.Server.Flavor)
	return r.note("server.flavor", err)
}

func (r *resolver) image(ctx context.Context) (err error) {
	r.found.image, err = r.client.ResolveImage(ctx, r.config.Server.Image)
	if err == nil {
		r.fit()
	}
	return r.note("server.image", err)
}

// fit holds what the image needs against what servers get. Nova does the same,
// and refuses every creation.
func (r *resolver) fit() {
	image, flavor, volume := r.found.image, r.found.flavor, r.config.Server.VolumeSize
	if volume > 0 && volume < image.MinDisk {
		r.problems.add("server.volume_size", "is %d GiB, but the image needs %d", volume, image.MinDisk)
	}
	if flavor.ID == "" {
		return // wrong itself
	}
	if volume == 0 && flavor.Disk > 0 && flavor.Disk < image.MinDisk {
		r.problems.add("server.flavor", "%s has a disk of %d GiB, but the image needs %d; take a larger flavor or set server.volume_size",
			flavor.Name, flavor.Disk, image.MinDisk)
	}
	if flavor.RAM < image.MinRAM {
		r.problems.add("server.flavor", "%s has %d MiB of RAM, but the image needs %d", flavor.Name, flavor.RAM, image.MinRAM)
	}
}

func (r *resolver) networks(ctx context.Context) error {
	for _, name := range r.config.Server.Networks {
		found, err := r.client.ResolveNetwork(ctx, name)
		if err := r.note("server.networks", err); err != nil {
			return err
		}
		r.found.networks = append(r.found.networks, found)
	}
	return nil
}

func (r *resolver) securityGroups(ctx context.Context) error {
	for _, name := range r.config.Server.SecurityGroups {
		found, err := r.client.ResolveSecurityGroup(ctx, name)
		if err := r.note("server.security_groups", err); err != nil {
			return err
		}
		r.found.securityGroups = append(r.found.securityGroups, found)
	}
	return nil
}

func (r *resolver) serverGroup(ctx context.Context) (err error) {
	if r.config.Server.ServerGroup == "" {
		return nil
	}
	r.found.serverGroup, err = r.client.ResolveServerGroup(ctx, r.config.Server.ServerGroup)
	return r.note("server.server_group", err)
}

func (r *resolver) keyPair(ctx context.Context) error {
	if r.config.Server.KeyName == "" {
		return nil
	}
	return r.note("server.key_name", r.client.CheckKeyPair(ctx, r.config.Server.KeyName))
}

// addressNetwork finds the network to connect on among those of the servers,
// whichever of the two is given by name and whichever by ID.
func (r *resolver) addressNetwork(context.Context) error {
	wanted := r.config.AddressNetwork
	if wanted == "" && len(r.found.networks) == 1 {
		r.found.addressNetwork = r.found.networks[0].Name
		return nil
	}
	i := slices.IndexFunc(r.found.networks, func(n cloud.Resource) bool { return n.ID == wanted || n.Name == wanted })
	if i >= 0 {
		r.found.addressNetwork = r.found.networks[i].Name
	} else if wanted != "" {
		r.problems.add("address_network", "must be one of server.networks, not %q", wanted)
	}
	return nil
}
