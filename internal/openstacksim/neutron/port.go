package neutron

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// Port is a place on a network, with its addresses.
type Port struct {
	ID, MAC string
	Network *Network
	// Server is the ID of the server that has it; empty when none has.
	Server     string
	IPv4, IPv6 netip.Addr

	name, project, owner, description string
	groups                            []string // IDs
	created                           time.Time
	own                               bool // made by its user: it outlives the server
}

// Status is what Neutron calls its state.
func (p *Port) Status() string {
	if p.Server != "" {
		return "ACTIVE"
	}
	return "DOWN"
}

// FixedIPs are its addresses, as the API shows them.
func (p *Port) FixedIPs() []any {
	ips := []any{}
	if p.IPv4.IsValid() {
		ips = append(ips, map[string]any{"subnet_id": p.Network.subnet4, "ip_address": p.IPv4.String()})
	}
	if p.IPv6.IsValid() {
		ips = append(ips, map[string]any{"subnet_id": p.Network.subnet6, "ip_address": p.IPv6.String()})
	}
	return ips
}

// PortsOf counts the ports of a project. The lock is held.
func (s *Neutron) PortsOf(project string) int {
	n := 0
	for _, p := range s.ports {
		if p.project == project {
			n++
		}
	}
	return n
}

// newPort makes a port with addresses of its network.
func (s *Neutron) newPort(n *Network, project, fixedIP string) (*Port, error) {
	if quota := s.cloud.Quota(s.cloud.Project(project)).Ports; quota != fault.Unlimited && s.PortsOf(project) >= quota {
		return nil, refusal(http.StatusConflict, "OverQuota", "Quota exceeded for resources: ['port'].")
	}
	p := &Port{ID: s.cloud.NewID(), project: project, Network: n, created: s.cloud.Now()}
	tail := s.macTail()
	p.MAC = fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", tail[0], tail[1], tail[2])
	if n.subnet4 != "" {
		address, err := s.takeAddress(n, fixedIP)
		if err != nil {
			return nil, err
		}
		p.IPv4 = address
	}
	if n.subnet6 != "" {
		p.IPv6 = slaac(n.IPv6, tail)
	}
	s.ports[p.ID] = p
	return p, nil
}

func (s *Neutron) macTail() [3]byte {
	var bytes [4]byte
	binary.BigEndian.PutUint32(bytes[:], s.cloud.Random.Uint32())
	return [3]byte(bytes[1:])
}

// slaac is the address that a MAC of Neutron's, fa:16:3e and three bytes, takes.
func slaac(prefix netip.Prefix, tail [3]byte) netip.Addr {
	bytes := prefix.Masked().Addr().As16()
	copy(bytes[8:], []byte{0xf8, 0x16, 0x3e, 0xff, 0xfe, tail[0], tail[1], tail[2]})
	return netip.AddrFrom16(bytes)
}

// FirstAddress is that of the first network with IPv4, which is its gateway's.
func (s *Neutron) FirstAddress() netip.Addr {
	if n := s.find(func(n *Network) bool { return n.IPv4.IsValid() }); n != nil {
		return n.IPv4.Masked().Addr().Next()
	}
	return netip.Addr{}
}

// deafTries is how many addresses are tried on which SSH cannot be answered.
const deafTries = 50

// takeAddress takes a free IPv4 address of a network, at random, since other
// simulators on this machine may take theirs from the same range. With SSH,
// free means that it could be listened on.
func (s *Neutron) takeAddress(n *Network, fixed string) (netip.Addr, error) {
	if fixed != "" {
		address, err := netip.ParseAddr(fixed)
		if err != nil || !n.IPv4.Contains(address) || n.used[address] || s.answerOn(address) != nil {
			return netip.Addr{}, refusal(http.StatusConflict, "IpAddressAlreadyAllocated", "IP address %s already allocated in subnet %s", fixed, n.subnet4)
		}
		n.used[address] = true
		return address, nil
	}
	base := n.IPv4.Masked().Addr().As4()
	size := uint64(1) << (32 - n.IPv4.Bits())
	deaf := 0
	for range 4 * size {
		if size <= 4 || deaf == deafTries {
			break
		}
		offset := 2 + s.cloud.Random.Uint64N(size-3)
		number := binary.BigEndian.Uint32(base[:]) + uint32(offset)
		var bytes [4]byte
		binary.BigEndian.PutUint32(bytes[:], number)
		address := netip.AddrFrom4(bytes)
		if n.used[address] {
			continue
		}
		if err := s.answerOn(address); err != nil {
			deaf++
			if deaf == deafTries {
				s.cloud.Logger.Warn("no server can answer SSH on the port", "reason", err.Error())
			}
			continue
		}
		n.used[address] = true
		return address, nil
	}
	return netip.Addr{}, refusal(http.StatusConflict, "IpAddressGenerationFailure", "No more IP addresses available on network %s.", n.ID)
}

// answerOn starts listening on an address, where servers do that.
func (s *Neutron) answerOn(address netip.Addr) error {
	if s.Listener == nil || !address.IsLoopback() {
		return nil
	}
	return s.Listener.Listen(address)
}

func (s *Neutron) freeAddress(n *Network, address netip.Addr) {
	if !address.IsValid() {
		return
	}
	delete(n.used, address)
	if s.Listener != nil {
		s.Listener.Unlisten(address)
	}
}

// Port returns one; nil if there is none. The lock is held.
func (s *Neutron) Port(id string) *Port { return s.ports[id] }

// Ports lists them all, by ID. The lock is held.
func (s *Neutron) Ports() []*Port { return cloud.Sorted(s.ports, nil) }

// At returns the port that an address leads to, its own or a floating IP's;
// nil if there is none. The lock is held.
func (s *Neutron) At(address netip.Addr) *Port {
	for _, p := range s.ports {
		if p.IPv4 == address {
			return p
		}
	}
	for _, f := range s.floatingIPs {
		if f.Address == address {
			return s.ports[f.Port]
		}
	}
	return nil
}

// Unused returns a port of a project by its ID, or the server that has it. The lock is held.
func (s *Neutron) Unused(project, id string) (p *Port, server string) {
	if p = s.ports[id]; p == nil || p.project != project {
		return nil, ""
	}
	return p, p.Server
}

// Wanted is what a server wants of a network: a port that exists, by its ID,
// or a new one, perhaps with an address.
type Wanted struct {
	Network       *Network
	Port, FixedIP string
}

// Bind gives a server its port. A new one gets security groups by name. The lock is held.
func (s *Neutron) Bind(want Wanted, server, zone, project string, groups []string) (*Port, error) {
	p := s.ports[want.Port]
	if p == nil {
		made, err := s.newPort(want.Network, project, want.FixedIP)
		if err != nil {
			return nil, err
		}
		p = made
		for _, name := range groups {
			for _, g := range s.SecurityGroups(project, name) {
				p.groups = append(p.groups, g.ID)
			}
		}
	}
	p.Server, p.owner = server, "compute:"+zone
	return p, nil
}

// Release undoes Bind; floating IPs stay behind, unassociated. The lock is held.
func (s *Neutron) Release(id string) {
	switch p := s.ports[id]; {
	case p == nil:
	case p.own:
		p.Server, p.owner = "", ""
	default:
		s.drop(p)
	}
}

func (s *Neutron) drop(p *Port) {
	for _, f := range s.floatingIPs {
		if f.Port == p.ID {
			f.Port, f.updated = "", s.cloud.Now()
		}
	}
	s.freeAddress(p.Network, p.IPv4)
	delete(s.ports, p.ID)
}

func portView(p *Port) map[string]any {
	groups := p.groups
	if groups == nil {
		groups = []string{}
	}
	return map[string]any{
		"id": p.ID, "name": p.name, "network_id": p.Network.ID, "tenant_id": p.project, "project_id": p.project,
		"mac_address": p.MAC, "admin_state_up": true, "status": p.Status(), "device_id": p.Server, "device_owner": p.owner,
		"fixed_ips": p.FixedIPs(), "allowed_address_pairs": []any{}, "extra_dhcp_opts": []any{}, "security_groups": groups,
		"description": p.description, "binding:vnic_type": "normal", "port_security_enabled": true, "tags": []any{},
		"created_at": p.created.UTC().Format(cloud.Seconds), "updated_at": p.created.UTC().Format(cloud.Seconds), "revision_number": 3,
	}
}

func (s *Neutron) listPorts(c *cloud.Call) (*cloud.Answer, error) {
	views := []map[string]any{}
	for _, p := range cloud.Sorted(s.ports, func(p *Port) bool { return p.project == c.Auth.Project.ID }) {
		views = append(views, portView(p))
	}
	return cloud.One("ports", chosen(views, c.Query))
}

func (s *Neutron) ownPort(c *cloud.Call, id string) (*Port, error) {
	p := s.ports[id]
	if p == nil || p.project != c.Auth.Project.ID {
		return nil, refusal(http.StatusNotFound, "PortNotFound", "Port %s could not be found.", id)
	}
	return p, nil
}

// port is the one that the path of a call names.
func (s *Neutron) port(c *cloud.Call) (*Port, error) { return s.ownPort(c, c.Arg("id")) }

func (s *Neutron) showPort(_ *cloud.Call, p *Port) (*cloud.Answer, error) {
	return cloud.OK(map[string]any{"port": portView(p)})
}

func (s *Neutron) createPort(c *cloud.Call) (*cloud.Answer, error) {
	var request struct {
		Port struct {
			Network     string `json:"network_id"`
			Name        string `json:"name"`
			Description string `json:"description"`
			FixedIPs    []struct {
				Address string `json:"ip_address"`
			} `json:"fixed_ips"`
		} `json:"port"`
	}
	if err := c.Decode(&request); err != nil {
		return nil, err
	}
	n, err := s.seen(c, request.Port.Network)
	if err != nil {
		return nil, err
	}
	fixed := ""
	if len(request.Port.FixedIPs) > 0 {
		fixed = request.Port.FixedIPs[0].Address
	}
	p, err := s.newPort(n, c.Auth.Project.ID, fixed)
	if err != nil {
		return nil, err
	}
	p.name, p.description, p.own = request.Port.Name, request.Port.Description, true
	for _, g := range s.SecurityGroups(p.project, "default") {
		p.groups = append(p.groups, g.ID)
	}
	return cloud.Created(map[string]any{"port": portView(p)})
}

func (s *Neutron) deletePort(_ *cloud.Call, p *Port) (*cloud.Answer, error) {
	s.drop(p)
	return cloud.NoContent()
}
