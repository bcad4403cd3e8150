package nova

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/neutron"
)

// The methods here are what other users, administrators and failures do. They
// name servers by ID or name.

func (s *Nova) with(idOrName string, do func(*server)) (err error) {
	s.cloud.Do(func() {
		for _, srv := range slices.Backward(s.order) {
			if !srv.gone() && (srv.id == idOrName || srv.name == idOrName) {
				do(srv)
				return
			}
		}
		err = fmt.Errorf("openstacksim: no server %q", idOrName)
	})
	return err
}

// Destroy takes a server away at once, as a deletion by hand does.
func (s *Nova) Destroy(idOrName string) error { return s.with(idOrName, s.destroy) }

// PowerOff lets the guest shut itself down.
func (s *Nova) PowerOff(idOrName string) error { return s.with(idOrName, s.powerOff) }

// SetStatus makes the API show a status, such as MIGRATING or UNKNOWN, in
// place of the true one; empty shows the true one again.
func (s *Nova) SetStatus(idOrName, status string) error {
	return s.with(idOrName, func(srv *server) {
		srv.shown = status
		s.touch(srv)
	})
}

// Break puts a server in ERROR with a fault, as a failed migration does.
func (s *Nova) Break(idOrName, fault string) error {
	return s.with(idOrName, func(srv *server) {
		srv.fault = &serverFault{code: 500, message: fault, at: s.cloud.Now()}
		s.become(srv, vmError)
	})
}

// Lock locks a server, as its owner or, if admin, so that its owner can not unlock it.
func (s *Nova) Lock(idOrName string, admin bool) error {
	return s.with(idOrName, func(srv *server) { srv.locked, srv.adminLocked = true, admin })
}

// SetFate changes the fate of a server that exists.
func (s *Nova) SetFate(idOrName string, fate fault.Fate) error {
	return s.with(idOrName, func(srv *server) { srv.fate = fate })
}

// ServerSpec is a server that another user makes. Flavor, Image and Network
// are names; unless set, the smallest flavor with a disk and the first image
// and network of the cloud.
type ServerSpec struct {
	Name, Project, Flavor, Image, Network string
	Tags                                  []string
	Metadata                              map[string]string
	Fate                                  fault.Fate
}

// AddServer makes a server past the API, already ACTIVE, and gives its ID.
func (s *Nova) AddServer(spec ServerSpec) (id string, err error) {
	s.cloud.Do(func() { id, err = s.addServer(spec) })
	return id, err
}

func (s *Nova) addServer(spec ServerSpec) (string, error) {
	project := cmp.Or(spec.Project, s.cloud.Projects[0].Name)
	srv := &server{
		id: s.cloud.NewID(), name: spec.Name, project: s.cloud.ProjectID(project), user: s.owner,
		tags: slices.Clone(spec.Tags), metadata: map[string]string{}, wantGroups: []string{"default"}, reservation: "r-" + s.cloud.NewHex()[:8],
	}
	if s.cloud.Project(srv.project) == nil {
		return "", fmt.Errorf("openstacksim: no project %q", project)
	}
	maps.Copy(srv.metadata, spec.Metadata)
	flavor, known := s.flavorNamed(spec.Flavor)
	image, network := s.glance.First(spec.Image), s.neutron.First(spec.Network)
	if !known || image == nil || network == nil {
		return "", fmt.Errorf("openstacksim: flavor %q, image %q or network %q not found", spec.Flavor, spec.Image, spec.Network)
	}
	srv.flavor, srv.image, srv.wantNetworks = flavor, image.ID, []neutron.Wanted{{Network: network}}
	srv.planted, srv.fate = true, spec.Fate
	s.enter(srv, "req-"+s.cloud.NewID())
	host, found := s.place(srv)
	if !found {
		return srv.id, fmt.Errorf("openstacksim: no host for %q", spec.Name)
	}
	srv.build++
	srv.host, srv.zone = host.Name, host.Zone
	if problem := s.equip(srv); problem != "" {
		return srv.id, fmt.Errorf("openstacksim: server %q: %s", spec.Name, problem)
	}
	s.spawned(srv)
	return srv.id, nil
}

// Guest is a server that runs, as what answers SSH for it needs to know it.
type Guest struct{ ID, Name, PublicKey string }

// GuestAt returns the server that answers on an address at present, if any has
// been ACTIVE for the time it takes to boot.
func (s *Nova) GuestAt(address netip.Addr, boot time.Duration) (guest Guest, up bool) {
	s.cloud.Do(func() {
		p := s.neutron.At(address)
		if p == nil {
			return
		}
		srv := s.servers[p.Server]
		if srv == nil || srv.vm != vmActive || s.cloud.Now().Before(srv.launched.Add(boot)) {
			return
		}
		key, _ := s.findKeyPair(srv.user, srv.keyName)
		guest, up = Guest{srv.id, srv.name, key.PublicKey}, true
	})
	return guest, up
}

// SetFates decides about the servers created from now on. decide gets the
// server's number, counted from 1 over the simulator's life, and what was asked
// for; it must not call the simulator. Nil means no special fate.
func (s *Nova) SetFates(decide func(n int, server fault.ServerInfo) fault.Fate) {
	s.cloud.Do(func() { s.fates = decide })
}

// fateOf decides about a new server: the function of SetFates, the rules that
// ask for no host, and the metadata lab_… that the hypervisor of the
// contract suite's real services obeys too. The lock is held.
func (s *Nova) fateOf(srv *server) fault.Fate {
	var fate fault.Fate
	s.created++
	if s.fates != nil {
		fate = s.fates(s.created, s.info(srv))
	}
	s.cloud.Decide(&fate, s.info(srv))
	for key, into := range map[string]*time.Duration{
		"lab_spawn_seconds": &fate.BuildTime, "lab_delete_seconds": &fate.DeleteTime, "lab_poweroff_after": &fate.PowerOffAfter,
	} {
		if seconds, err := strconv.ParseFloat(srv.metadata[key], 64); err == nil {
			*into = time.Duration(seconds * float64(time.Second))
		}
	}
	if text := srv.metadata["lab_spawn_fail"]; text != "" {
		fate.Fault = "Build of instance " + srv.id + " aborted: " + text
	}
	if n, err := strconv.Atoi(srv.metadata["lab_spawn_reschedule"]); err == nil && n >= len(s.hosts) {
		fate.Fault, fate.Hostless = fault.RetriesExceeded+srv.id+".", true
	}
	if n, err := strconv.Atoi(srv.metadata["lab_delete_fail"]); err == nil && n > 0 {
		fate.FailDeletes = n
	}
	return fate
}
