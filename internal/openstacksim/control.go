package openstacksim

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// The methods here are other people's hands: users of the same project,
// administrators, and what breaks. They name servers by ID or name.

func (s *Simulator) with(idOrName string, do func(*server)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	for _, srv := range slices.Backward(s.serverOrder) {
		if !srv.gone() && (srv.id == idOrName || srv.name == idOrName) {
			do(srv)
			return nil
		}
	}
	return fmt.Errorf("openstacksim: no server %q", idOrName)
}

// Destroy takes a server away at once, as somebody's deletion by hand.
func (s *Simulator) Destroy(idOrName string) error { return s.with(idOrName, s.destroy) }

// PowerOff lets the guest shut itself down.
func (s *Simulator) PowerOff(idOrName string) error { return s.with(idOrName, s.powerOff) }

// SetStatus makes the API show a status, such as MIGRATING or UNKNOWN, in
// place of the true one; empty shows the true one again.
func (s *Simulator) SetStatus(idOrName, status string) error {
	return s.with(idOrName, func(srv *server) {
		srv.shown = status
		s.touch(srv)
	})
}

// Break puts a server in ERROR with a fault, as a failed migration does.
func (s *Simulator) Break(idOrName, fault string) error {
	return s.with(idOrName, func(srv *server) {
		srv.fault = &serverFault{code: 500, message: fault, at: s.present}
		s.become(srv, vmError)
	})
}

// Lock locks a server, as its owner or, if admin, so that its owner can not unlock it.
func (s *Simulator) Lock(idOrName string, admin bool) error {
	return s.with(idOrName, func(srv *server) { srv.locked, srv.adminLocked = true, admin })
}

// SetFate changes the fate of a server that exists.
func (s *Simulator) SetFate(idOrName string, fate Fate) error {
	return s.with(idOrName, func(srv *server) { srv.fate = fate })
}

// ServerSpec is a server that somebody else makes. Flavor, Image and Network
// are names; unless set, the smallest flavor with a disk and the first image
// and network of the cloud.
type ServerSpec struct {
	Name, Project, Flavor, Image, Network string
	Tags                                  []string
	Metadata                              map[string]string
	Fate                                  Fate
}

// AddServer makes a server past the API, already ACTIVE, and gives its ID.
func (s *Simulator) AddServer(spec ServerSpec) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	project := spec.Project
	if project == "" {
		project = s.projects[0].Name
	}
	srv := &server{
		id: s.newID(), name: spec.Name, project: s.projectID(project), user: s.users[0].ID,
		tags: slices.Clone(spec.Tags), metadata: map[string]string{}, wantGroups: []string{"default"}, reservation: "r-" + s.newHex()[:8],
	}
	if s.project(srv.project) == nil {
		return "", fmt.Errorf("openstacksim: no project %q", project)
	}
	maps.Copy(srv.metadata, spec.Metadata)
	flavor := s.flavorFor(spec.Flavor)
	image := slices.IndexFunc(s.images, func(i Image) bool { return i.Name == spec.Image || spec.Image == "" })
	net := slices.IndexFunc(s.networks, func(n *network) bool { return n.Name == spec.Network || spec.Network == "" && !n.External })
	if flavor < 0 || image < 0 || net < 0 {
		return "", fmt.Errorf("openstacksim: flavor %q, image %q or network %q not found", spec.Flavor, spec.Image, spec.Network)
	}
	srv.flavor, srv.image = s.flavors[flavor], s.images[image].ID
	srv.wantNetworks = []wantedNetwork{{network: s.networks[net]}}
	srv.planted, srv.fate = true, spec.Fate
	s.enter(srv, "req-"+s.newID())
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

// flavorFor finds a flavor by its name; without one, the smallest with a disk.
func (s *Simulator) flavorFor(name string) int {
	best := -1
	for i, f := range s.flavors {
		small := name == "" && f.Disk > 0 && (best < 0 || f.RAM < s.flavors[best].RAM)
		if f.Name == name || small {
			best = i
		}
	}
	return best
}

// AddImage adds an image and gives its ID.
func (s *Simulator) AddImage(image Image) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	return s.plantImage(image)
}

// RemoveImages takes all images of a name away and says how many they were.
func (s *Simulator) RemoveImages(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.images)
	s.images = slices.DeleteFunc(s.images, func(i Image) bool { return i.Name == name })
	return before - len(s.images)
}

// SetQuota changes the quota of a project, by its name.
func (s *Simulator) SetQuota(project string, change func(*Quota)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.project(s.projectID(project))
	if p == nil {
		return fmt.Errorf("openstacksim: no project %q", project)
	}
	change(&p.Quota)
	return nil
}

// SetCellDown makes the cell of all servers unreachable, or reachable again:
// listings by filter leave them out, and their calls fail.
func (s *Simulator) SetCellDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.set.CellDown = down
}

// SetListingLag lets listings show new servers, and stop showing deleted
// ones, so much later than a GET.
func (s *Simulator) SetListingLag(lag time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set.ListingLag = lag
}

// RevokeTokens makes every token bad.
func (s *Simulator) RevokeTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// RevokeCredential takes an application credential, by name, away from every
// user, with its tokens.
func (s *Simulator) RevokeCredential(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.users {
		for i := range u.ApplicationCredentials {
			if u.ApplicationCredentials[i].Name == name {
				s.revoke(&u.ApplicationCredentials[i])
			}
		}
	}
}

// AddCredential gives the first user another application credential; its ID
// is chosen when empty, and returned.
func (s *Simulator) AddCredential(credential ApplicationCredential) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	credential.ID = orElse(credential.ID, s.newHex)
	// A new slice: tokens point into the old one.
	s.users[0].ApplicationCredentials = append(slices.Clone(s.users[0].ApplicationCredentials), credential)
	return credential.ID
}

// SetPassword changes the password of a user; tokens stay good.
func (s *Simulator) SetPassword(user, password string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.findUser("", user)
	if u == nil {
		return fmt.Errorf("openstacksim: no user %q", user)
	}
	u.Password = password
	return nil
}
