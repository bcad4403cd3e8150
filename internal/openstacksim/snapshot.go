package openstacksim

import "slices"

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
func (s *Simulator) Snapshot() (shot Snapshot) {
	s.Do(func() {
		shot = Snapshot{Servers: s.Servers(), KeyPairs: s.KeyPairs(), ServersCreated: s.Entered()}
		for _, p := range s.Ports() {
			shot.Ports = append(shot.Ports, PortInfo{ID: p.ID, Network: p.Network.Name, Server: p.Server, Address: p.IPv4.String()})
		}
		for _, f := range s.FloatingIPs() {
			shot.FloatingIPs = append(shot.FloatingIPs, FloatingIPInfo{ID: f.ID, Address: f.Address.String(), Port: f.Port, Description: f.Description})
		}
		for _, v := range s.Volumes() {
			shot.Volumes = append(shot.Volumes, VolumeInfo{ID: v.ID, Type: v.Type, Status: v.Status, Server: v.Server, Size: v.Size})
		}
	})
	return shot
}
