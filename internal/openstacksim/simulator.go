package openstacksim

import (
	"fmt"
	"net/netip"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cinder"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/glance"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/guest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/keystone"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/neutron"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/nova"
)

// Simulator is one cloud, made of its services: what is common to all of them,
// such as [cloud.Cloud.Inject] and [cloud.Cloud.Calls], and what each one lets
// an administrator do, such as [nova.Nova.AddServer], are its methods. It is an
// [net/http.Handler]; serve it on loopback only. Methods may be called
// concurrently, except those whose documentation says that the lock is held.
type Simulator struct {
	*cloud.Cloud
	*keystone.Keystone
	*glance.Glance
	*neutron.Neutron
	*cinder.Cinder
	*nova.Nova

	options Options
	shells  *guest.Shells // nil without SSH
}

// New makes a cloud. It fails only when the options contradict themselves or
// SSH cannot be served: [ErrSSHPort] where that is for its port.
func New(options Options) (*Simulator, error) {
	options = options.withDefaults()
	seed := options.Seed
	if len(seed.Users) == 0 || len(seed.Projects) == 0 || len(seed.Regions) == 0 {
		return nil, fmt.Errorf("openstacksim: a seed needs a project, a user and a region")
	}
	s := &Simulator{options: options, Cloud: cloud.New(cloud.Options{Now: options.Now, Logger: options.Logger, Seed: options.RandomSeed})}
	for _, p := range seed.Projects {
		s.AddProject(p)
	}
	var err error
	s.Keystone = keystone.New(s.Cloud, seed.Regions, options.TokenLife, seed.Users)
	s.Glance = glance.New(s.Cloud, seed.Images)
	if s.Neutron, err = neutron.New(s.Cloud, seed.Networks, seed.SecurityGroups); err != nil {
		return nil, err
	}
	s.Cinder = cinder.New(s.Cloud, s.Glance, seed.VolumeTypes)
	s.Nova, err = nova.New(s.Cloud, s.Neutron, s.Glance, s.Cinder, nova.Settings{
		BuildTime: options.BuildTime, DeleteTime: options.DeleteTime, ActionTime: options.ActionTime,
		MaxLimit: options.MaxLimit, MaxMicroversion: options.MaxMicroversion, NoVersions: options.NoVersions,
	}, nova.Seed{
		User: s.FirstUser().ID, Flavors: seed.Flavors, Hosts: seed.Hosts, KeyPairs: seed.KeyPairs, ServerGroups: seed.ServerGroups,
	})
	if err != nil || options.SSH == nil {
		return s, err
	}
	if s.shells, err = guest.New(*options.SSH, s.FirstAddress(), s.guestAt); err != nil {
		return nil, err
	}
	s.Neutron.Listener, s.Nova.Destroyed = s.shells, s.shells.Forget
	return s, nil
}

// guestAt tells which server answers SSH on an address at present, if any.
func (s *Simulator) guestAt(address netip.Addr) (guest.Guest, bool) {
	g, up := s.GuestAt(address, s.options.BootTime)
	return guest.Guest{ID: g.ID, Name: g.Name, PublicKey: g.PublicKey}, up
}

// SSHPort is the port on which servers answer SSH; 0 without SSH.
func (s *Simulator) SSHPort() int {
	if s.shells == nil {
		return 0
	}
	return s.shells.Port()
}

// Close ends the SSH servers with what runs on them and removes their folders.
// A simulator without SSH has nothing to close.
func (s *Simulator) Close() error {
	if s.shells == nil {
		return nil
	}
	return s.shells.Close()
}
