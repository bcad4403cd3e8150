package openstacksim

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// ServerInfo is what the simulator knows of a server.
type ServerInfo struct {
	ID, Name, Project string // the project by its name
	// Status as the API shows it, and the task state.
	Status, TaskState string
	Flavor            string // by name
	Image             string // by ID, empty when booted from a volume
	KeyName, UserData string
	Zone, Host, Group string // the group by its ID
	ConfigDrive       bool
	Locked            bool
	Tags              []string
	Metadata          map[string]string
	// Addresses by network, in the order of the API.
	Addresses map[string][]string
	Fault     string
	Volumes   []string
	// Created is when, on the simulator's clock.
	Created time.Time
}

// PortInfo is a port of Neutron.
type PortInfo struct{ ID, Network, Server, Address string }

// FloatingIPInfo is a floating IP; Port is empty when it is not associated.
type FloatingIPInfo struct{ ID, Address, Port, Description string }

// VolumeInfo is a volume of Cinder; Server is empty when it is not attached.
type VolumeInfo struct {
	ID, Type, Status, Server string
	Size                     int
}

// Snapshot is what exists at one moment, deleted servers left out.
type Snapshot struct {
	// Servers, oldest first.
	Servers     []ServerInfo
	Ports       []PortInfo
	FloatingIPs []FloatingIPInfo
	Volumes     []VolumeInfo
	KeyPairs    []string
	// ServersCreated counts all servers that there ever were.
	ServersCreated int
}

// Tagged gives the servers that carry a tag.
func (s Snapshot) Tagged(tag string) []ServerInfo {
	var tagged []ServerInfo
	for _, srv := range s.Servers {
		if slices.Contains(srv.Tags, tag) {
			tagged = append(tagged, srv)
		}
	}
	return tagged
}

// Server gives the server with an ID or, failing that, a name.
func (s Snapshot) Server(idOrName string) (ServerInfo, bool) {
	for _, srv := range s.Servers {
		if srv.ID == idOrName || srv.Name == idOrName {
			return srv, true
		}
	}
	return ServerInfo{}, false
}

// Snapshot gives what exists now; tests compare two of them to find leaks.
func (s *Simulator) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	shot := Snapshot{ServersCreated: s.entered}
	for _, srv := range s.serverOrder {
		if !srv.gone() {
			shot.Servers = append(shot.Servers, s.serverInfo(srv))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.ports)) {
		p := s.ports[id]
		shot.Ports = append(shot.Ports, PortInfo{ID: id, Network: p.network.Name, Server: p.device, Address: p.ipv4.String()})
	}
	for _, id := range slices.Sorted(maps.Keys(s.floatingIPs)) {
		f := s.floatingIPs[id]
		shot.FloatingIPs = append(shot.FloatingIPs, FloatingIPInfo{ID: id, Address: f.address.String(), Port: f.port, Description: f.description})
	}
	for _, id := range slices.Sorted(maps.Keys(s.volumes)) {
		v := s.volumes[id]
		shot.Volumes = append(shot.Volumes, VolumeInfo{ID: id, Type: v.kind, Status: v.status, Server: v.server, Size: v.size})
	}
	for _, k := range s.keyPairs {
		shot.KeyPairs = append(shot.KeyPairs, k.Name)
	}
	return shot
}

func (s *Simulator) serverInfo(srv *server) ServerInfo {
	info := ServerInfo{
		ID: srv.id, Name: srv.name, Status: srv.status(), TaskState: srv.task, Flavor: srv.flavor.Name, Image: srv.image,
		KeyName: srv.keyName, UserData: srv.userData, Zone: srv.zone, Host: srv.host, ConfigDrive: srv.configDrive,
		Locked: srv.locked, Tags: slices.Clone(srv.tags), Metadata: maps.Clone(srv.metadata),
		Volumes: slices.Clone(srv.volumes), Created: srv.created,
	}
	slices.SortFunc(info.Tags, strings.Compare)
	if p := s.project(srv.project); p != nil {
		info.Project = p.Name
	}
	if srv.group != nil {
		info.Group = srv.group.ID
	}
	if srv.fault != nil {
		info.Fault = srv.fault.message
	}
	for name, addresses := range s.addressesOf(srv) {
		if info.Addresses == nil {
			info.Addresses = map[string][]string{}
		}
		for _, a := range addresses {
			info.Addresses[name] = append(info.Addresses[name], a.Addr)
		}
	}
	return info
}
