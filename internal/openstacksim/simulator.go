package openstacksim

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

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
	s.Listener, s.Destroyed = s.shells, s.shells.Forget
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

// Options says what cloud a simulator is. The zero value is a small cloud with
// room for 2000 servers, without SSH, whose servers take two seconds to build.
//
// A duration of zero takes its default; a negative one means "at once".
type Options struct {
	// Seed is what exists from the start; nil means [DefaultSeed].
	Seed *Seed

	// BuildTime is the time from the answer to a create to ACTIVE; 2 s unless set.
	BuildTime time.Duration
	// DeleteTime is the time a deletion takes; 1 s unless set.
	DeleteTime time.Duration
	// ActionTime is the time of stop, start, suspend and so on; 1 s unless set.
	ActionTime time.Duration
	// BootTime is the time from ACTIVE to the first answer over SSH; at once unless set.
	BootTime time.Duration
	// TokenLife is how long a token is good for; 24 h unless set.
	TokenLife time.Duration

	// MaxLimit is the greatest page of a server listing, Nova's max_limit; 1000 unless set.
	MaxLimit int
	// MaxMicroversion is the greatest microversion of Nova, "2.93" unless set.
	MaxMicroversion string
	// NoVersions takes Nova's version documents away (404), as some proxies do.
	NoVersions bool

	// SSH makes servers answer SSH; nil leaves it out.
	SSH *SSH

	// Logger gets a line per call; nil discards.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now, which testing/synctest fakes.
	Now func() time.Time
	// RandomSeed makes the random choices (identifiers, shares) of two
	// simulators the same when it is the same and not 0.
	RandomSeed uint64
}

func (o Options) withDefaults() Options {
	if o.Seed == nil {
		seed := DefaultSeed()
		o.Seed = &seed
	}
	o.BuildTime = orDefault(o.BuildTime, 2*time.Second)
	o.DeleteTime = orDefault(o.DeleteTime, time.Second)
	o.ActionTime = orDefault(o.ActionTime, time.Second)
	o.BootTime = max(o.BootTime, 0)
	o.TokenLife = orDefault(o.TokenLife, 24*time.Hour)
	o.MaxLimit = cmp.Or(max(o.MaxLimit, 0), 1000)
	o.MaxMicroversion = cmp.Or(o.MaxMicroversion, "2.93")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func orDefault(d, standard time.Duration) time.Duration {
	switch {
	case d == 0:
		return standard
	case d < 0:
		return 0
	default:
		return d
	}
}
