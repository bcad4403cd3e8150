package openstacksim

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

type port struct {
	id, name, project, device, owner string
	description                      string
	network                          *network
	mac                              string
	ipv4, ipv6                       netip.Addr
	groups                           []string // IDs
	created                          time.Time
	own                              bool // made by its user: it outlives the server
}

func (p *port) status() string {
	if p.device != "" {
		return "ACTIVE"
	}
	return "DOWN"
}

func (p *port) fixedIPs() []any {
	ips := []any{}
	if p.ipv4.IsValid() {
		ips = append(ips, map[string]any{"subnet_id": p.network.subnet4, "ip_address": p.ipv4.String()})
	}
	if p.ipv6.IsValid() {
		ips = append(ips, map[string]any{"subnet_id": p.network.subnet6, "ip_address": p.ipv6.String()})
	}
	return ips
}

func (s *Simulator) portsOf(project string) int {
	n := 0
	for _, p := range s.ports {
		if p.project == project {
			n++
		}
	}
	return n
}

// newPort makes a port with addresses of its network.
func (s *Simulator) newPort(n *network, project, fixedIP string) (*port, error) {
	if quota := s.quotaOf(s.project(project)).Ports; quota != Unlimited && s.portsOf(project) >= quota {
		return nil, neutronRefusal(http.StatusConflict, "OverQuota", "Quota exceeded for resources: ['port'].")
	}
	p := &port{id: s.newID(), project: project, network: n, created: s.present}
	tail := s.macTail()
	p.mac = fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", tail[0], tail[1], tail[2])
	if n.subnet4 != "" {
		address, err := s.takeAddress(n, fixedIP)
		if err != nil {
			return nil, err
		}
		p.ipv4 = address
	}
	if n.subnet6 != "" {
		p.ipv6 = slaac(n.IPv6, tail)
	}
	s.ports[p.id] = p
	return p, nil
}

func (s *Simulator) macTail() [3]byte {
	var bytes [4]byte
	binary.BigEndian.PutUint32(bytes[:], s.random.Uint32())
	return [3]byte(bytes[1:])
}

// slaac is the address that a MAC of Neutron's, fa:16:3e and three bytes, takes.
func slaac(prefix netip.Prefix, tail [3]byte) netip.Addr {
	bytes := prefix.Masked().Addr().As16()
	copy(bytes[8:], []byte{0xf8, 0x16, 0x3e, 0xff, 0xfe, tail[0], tail[1], tail[2]})
	return netip.AddrFrom16(bytes)
}

// firstAddress is that of the first network with IPv4, which is its gateway's.
func (s *Simulator) firstAddress() netip.Addr {
	for _, n := range s.networks {
		if n.IPv4.IsValid() {
			return n.IPv4.Masked().Addr().Next()
		}
	}
	return netip.Addr{}
}

// deafTries is how many addresses are tried on which SSH cannot be answered.
const deafTries = 50

// takeAddress takes a free IPv4 address of a network, at random, since other
// simulators on this machine may take theirs from the same range. With SSH,
// free means that it could be listened on.
func (s *Simulator) takeAddress(n *network, fixed string) (netip.Addr, error) {
	if fixed != "" {
		address, err := netip.ParseAddr(fixed)
		if err != nil || !n.IPv4.Contains(address) || n.used[address] || s.answerOn(address) != nil {
			return netip.Addr{}, neutronRefusal(http.StatusConflict, "IpAddressAlreadyAllocated", "IP address %s already allocated in subnet %s", fixed, n.subnet4)
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
		offset := 2 + s.random.Uint64N(size-3)
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
				s.options.Logger.Warn("no server can answer SSH on the port", "reason", err.Error())
			}
			continue
		}
		n.used[address] = true
		return address, nil
	}
	return netip.Addr{}, neutronRefusal(http.StatusConflict, "IpAddressGenerationFailure", "No more IP addresses available on network %s.", n.ID)
}

// answerOn starts listening for SSH on an address, where servers do that.
func (s *Simulator) answerOn(address netip.Addr) error {
	if s.shells == nil || !address.IsLoopback() {
		return nil
	}
	return s.shells.listen(address)
}

func (s *Simulator) freeAddress(n *network, address netip.Addr) {
	if !address.IsValid() {
		return
	}
	delete(n.used, address)
	if s.shells != nil {
		s.shells.unlisten(address)
	}
}

// bindPort gives a server its port on a network.
func (s *Simulator) bindPort(srv *server, want wantedNetwork) (*port, error) {
	p := s.ports[want.port]
	if p == nil {
		made, err := s.newPort(want.network, srv.project, want.fixedIP)
		if err != nil {
			return nil, err
		}
		p = made
		for _, name := range srv.wantGroups {
			for _, g := range s.findSecurityGroup(srv.project, name) {
				p.groups = append(p.groups, g.id)
			}
		}
	}
	p.device, p.owner = srv.id, "compute:"+srv.zone
	return p, nil
}

// releasePort undoes bindPort; floating IPs stay behind, unassociated.
func (s *Simulator) releasePort(id string) {
	p := s.ports[id]
	if p == nil {
		return
	}
	if p.own {
		p.device, p.owner = "", ""
		return
	}
	s.dropPort(p)
}

func (s *Simulator) dropPort(p *port) {
	for _, f := range s.floatingIPs {
		if f.port == p.id {
			f.port = ""
			f.updated = s.present
		}
	}
	s.freeAddress(p.network, p.ipv4)
	delete(s.ports, p.id)
}

func portView(p *port) map[string]any {
	groups := p.groups
	if groups == nil {
		groups = []string{}
	}
	return map[string]any{
		"id": p.id, "name": p.name, "network_id": p.network.ID, "tenant_id": p.project, "project_id": p.project,
		"mac_address": p.mac, "admin_state_up": true, "status": p.status(), "device_id": p.device, "device_owner": p.owner,
		"fixed_ips": p.fixedIPs(), "allowed_address_pairs": []any{}, "extra_dhcp_opts": []any{}, "security_groups": groups,
		"description": p.description, "binding:vnic_type": "normal", "port_security_enabled": true, "tags": []any{},
		"created_at": p.created.UTC().Format(withZone), "updated_at": p.created.UTC().Format(withZone), "revision_number": 3,
	}
}

func (s *Simulator) listPorts(c *call) (*answer, error) {
	var own []*port
	for _, p := range s.ports {
		if p.project == c.auth.project.ID {
			own = append(own, p)
		}
	}
	slices.SortFunc(own, func(a, b *port) int { return strings.Compare(a.id, b.id) })
	views := []map[string]any{}
	for _, p := range own {
		views = append(views, portView(p))
	}
	return ok(map[string]any{"ports": chosen(views, c.query)})
}

func (s *Simulator) ownPort(c *call, id string) (*port, error) {
	p := s.ports[id]
	if p == nil || p.project != c.auth.project.ID {
		return nil, neutronRefusal(http.StatusNotFound, "PortNotFound", "Port %s could not be found.", id)
	}
	return p, nil
}

func (s *Simulator) showPort(c *call) (*answer, error) {
	p, err := s.ownPort(c, c.arg("id"))
	if err != nil {
		return nil, err
	}
	return ok(map[string]any{"port": portView(p)})
}

func (s *Simulator) createPort(c *call) (*answer, error) {
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
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	n := s.findNetwork(c.auth.project.ID, request.Port.Network)
	if n == nil {
		return nil, neutronRefusal(http.StatusNotFound, "NetworkNotFound", "Network %s could not be found.", request.Port.Network)
	}
	fixed := ""
	if len(request.Port.FixedIPs) > 0 {
		fixed = request.Port.FixedIPs[0].Address
	}
	p, err := s.newPort(n, c.auth.project.ID, fixed)
	if err != nil {
		return nil, err
	}
	p.name, p.description, p.own = request.Port.Name, request.Port.Description, true
	for _, g := range s.findSecurityGroup(p.project, "default") {
		p.groups = append(p.groups, g.id)
	}
	return created(map[string]any{"port": portView(p)})
}

func (s *Simulator) deletePort(c *call) (*answer, error) {
	p, err := s.ownPort(c, c.arg("id"))
	if err != nil {
		return nil, err
	}
	s.dropPort(p)
	return noContent()
}
