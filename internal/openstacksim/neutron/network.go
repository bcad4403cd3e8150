// Package neutron is the network service of the simulator: networks with their
// subnets, ports, floating IPs, and security groups.
//
// It gives addresses, and carries nothing: no packet is routed or filtered, and
// the rules of security groups are only shown.
package neutron

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// Network is a network with its subnets.
type Network struct {
	// ID is chosen when empty.
	ID, Name string
	// Project is the name of the owner; empty means a project unknown to the users.
	Project string
	// Shared lets all projects use it; External offers floating IPs.
	Shared, External bool
	// IPv4 and IPv6 are the ranges of its subnets; invalid ones mean no subnet.
	IPv4, IPv6 netip.Prefix
	// DNS are the name servers of the IPv4 subnet.
	DNS []string

	subnet4, subnet6 string // IDs
	subnetName       string // as asked for
	created          time.Time
	used             map[netip.Addr]bool
}

// Listener answers on addresses. Neutron gives no port an address that it refuses.
type Listener interface {
	Listen(address netip.Addr) error
	Unlisten(address netip.Addr)
}

// Neutron is the service of one cloud.
type Neutron struct {
	// Listener answers on the loopback addresses of ports and floating IPs; nil
	// leaves them silent. Set it before the first call.
	Listener Listener

	cloud       *cloud.Cloud
	networks    []*Network
	groups      []SecurityGroup
	ports       map[string]*Port
	floatingIPs map[string]*FloatingIP
}

// New adds Neutron to a cloud. Each project has the group default besides those given.
func New(c *cloud.Cloud, networks []Network, groups []SecurityGroup) (*Neutron, error) {
	s := &Neutron{cloud: c, ports: map[string]*Port{}, floatingIPs: map[string]*FloatingIP{}}
	for _, n := range networks {
		if err := s.plant(n); err != nil {
			return nil, err
		}
	}
	for _, p := range c.Projects {
		s.groups = append(s.groups, SecurityGroup{
			ID: c.NewID(), Name: "default", Project: p.ID, Description: "Default security group", created: c.Now(),
		})
	}
	for _, g := range groups {
		g.ID, g.Project, g.created = c.NewID(), c.ProjectID(g.Project), c.Now()
		s.groups = append(s.groups, g)
	}
	s.serve()
	return s, nil
}

func (s *Neutron) serve() {
	api := s.cloud.Serve(cloud.Service{Name: "network", Wrap: wrap, NoMethod: func(string) string {
		return "The server could not comply with the request since it is either malformed or otherwise incorrect."
	}})
	api.Open("GET ", fault.OpNetworkInfo, s.versions)
	api.Open("GET /v2.0", fault.OpNetworkInfo, s.versions)
	api.Handle("GET /v2.0/extensions", fault.OpNetworkInfo, s.extensions)
	api.Handle("GET /v2.0/quotas/{owner}", fault.OpNetworkInfo, s.showQuota)
	api.Handle("GET /v2.0/networks", fault.OpNetworks, s.listNetworks)
	api.Handle("POST /v2.0/networks", fault.OpNetworks, s.createNetwork)
	api.Handle("GET /v2.0/networks/{id}", fault.OpNetworks, cloud.With(s.shown, s.showNetwork))
	api.Handle("DELETE /v2.0/networks/{id}", fault.OpNetworks, s.deleteNetwork)
	api.Handle("GET /v2.0/subnets", fault.OpSubnets, s.listSubnets)
	api.Handle("POST /v2.0/subnets", fault.OpSubnets, s.createSubnet)
	api.Handle("GET /v2.0/subnets/{id}", fault.OpSubnets, s.showSubnet)
	api.Handle("GET /v2.0/security-groups", fault.OpSecurityGroup, s.listSecurityGroups)
	api.Handle("GET /v2.0/security-groups/{id}", fault.OpSecurityGroup, s.showSecurityGroup)
	api.Handle("GET /v2.0/ports", fault.OpPorts, s.listPorts)
	api.Handle("POST /v2.0/ports", fault.OpPorts, s.createPort)
	api.Handle("GET /v2.0/ports/{id}", fault.OpPorts, cloud.With(s.port, s.showPort))
	api.Handle("DELETE /v2.0/ports/{id}", fault.OpPorts, cloud.With(s.port, s.deletePort))
	api.Handle("GET /v2.0/floatingips", fault.OpFloatingIPs, s.listFloatingIPs)
	api.Handle("POST /v2.0/floatingips", fault.OpFloatingIPs, s.createFloatingIP)
	api.Handle("GET /v2.0/floatingips/{id}", fault.OpFloatingIPs, cloud.With(s.ownFloatingIP, s.showFloatingIP))
	api.Handle("PUT /v2.0/floatingips/{id}", fault.OpFloatingIPs, cloud.With(s.ownFloatingIP, s.updateFloatingIP))
	api.Handle("DELETE /v2.0/floatingips/{id}", fault.OpFloatingIPs, cloud.With(s.ownFloatingIP, s.deleteFloatingIP))
}

func wrap(e *cloud.Error) *cloud.Answer {
	kind := e.Kind
	if kind == "" || kind == cloud.NoRoute || kind == cloud.NoMethod {
		kind = map[int]string{
			http.StatusNotFound: "HTTPNotFound", http.StatusConflict: "Conflict", http.StatusForbidden: "PolicyNotAuthorized",
			http.StatusBadRequest: "HTTPBadRequest", http.StatusMethodNotAllowed: "HTTPMethodNotAllowed",
		}[e.Status]
	}
	return &cloud.Answer{Status: e.Status, Body: map[string]any{"NeutronError": map[string]any{
		"type": kind, "message": e.Message, "detail": "",
	}}}
}

// refusal is one with the type that Neutron gives it.
func refusal(status int, kind, format string, args ...any) error {
	return &cloud.Error{Status: status, Kind: kind, Message: fmt.Sprintf(format, args...)}
}

func (s *Neutron) versions(c *cloud.Call) (*cloud.Answer, error) {
	c.Plain = true
	return cloud.OK(map[string]any{"versions": []any{map[string]any{
		"id": "v2.0", "status": "CURRENT", "links": []cloud.Link{{Rel: "self", Href: c.Root("network") + "/v2.0/"}},
	}}})
}

func (s *Neutron) extensions(*cloud.Call) (*cloud.Answer, error) {
	names := []any{}
	for _, alias := range []string{"router", "external-net", "security-group", "standard-attr-description", "project-id"} {
		names = append(names, map[string]any{"alias": alias, "name": alias, "description": "", "links": []any{}})
	}
	return cloud.OK(map[string]any{"extensions": names})
}

// showQuota is what `openstack quota show` asks for. What the simulator does
// not bound has the service's defaults.
func (s *Neutron) showQuota(c *cloud.Call) (*cloud.Answer, error) {
	if c.Arg("owner") != c.Auth.Project.ID {
		return nil, refusal(http.StatusForbidden, "PolicyNotAuthorized", "rule:get_quota is disallowed by policy")
	}
	quota := s.cloud.Quota(c.Auth.Project)
	return cloud.One("quota", map[string]any{
		"port": quota.Ports, "floatingip": quota.FloatingIPs, "network": 100, "subnet": 100, "subnetpool": fault.Unlimited, "router": 10,
		"rbac_policy": 10, "security_group": 100, "security_group_rule": 1000,
	})
}

func (s *Neutron) plant(n Network) error {
	n.ID, n.Project = s.cloud.OrID(n.ID), s.cloud.ProjectID(n.Project)
	n.created, n.used = s.cloud.Now(), map[netip.Addr]bool{}
	if n.IPv4.IsValid() {
		if !n.IPv4.Addr().Is4() {
			return fmt.Errorf("openstacksim: network %s: %s is not IPv4", n.Name, n.IPv4)
		}
		n.subnet4 = s.cloud.NewID()
	}
	if n.IPv6.IsValid() {
		n.subnet6 = s.cloud.NewID()
	}
	s.networks = append(s.networks, &n)
	return nil
}

// Visible returns a network that a project sees; nil if there is none. The lock is held.
func (s *Neutron) Visible(project, id string) *Network {
	return s.find(func(n *Network) bool { return n.ID == id && n.seenBy(project) })
}

// First returns the first network of a name or, for an empty one, of those
// that are not external. The lock is held.
func (s *Neutron) First(name string) *Network {
	return s.find(func(n *Network) bool { return n.Name == name || name == "" && !n.External })
}

func (s *Neutron) find(is func(*Network) bool) *Network {
	if at := slices.IndexFunc(s.networks, is); at >= 0 {
		return s.networks[at]
	}
	return nil
}

// Usable lists the networks that a project may put servers on. The lock is held.
func (s *Neutron) Usable(project string) []*Network {
	var usable []*Network
	for _, n := range s.networks {
		if !n.External && (n.Shared || n.Project == project) {
			usable = append(usable, n)
		}
	}
	return usable
}

// seen is the network that a request names, as far as the caller sees it.
func (s *Neutron) seen(c *cloud.Call, id string) (*Network, error) {
	if n := s.Visible(c.Auth.Project.ID, id); n != nil {
		return n, nil
	}
	return nil, refusal(http.StatusNotFound, "NetworkNotFound", "Network %s could not be found.", id)
}

// shown is the network that the path of a call names.
func (s *Neutron) shown(c *cloud.Call) (*Network, error) { return s.seen(c, c.Arg("id")) }

// own is the network that a request names, if it is the caller's.
func (s *Neutron) own(c *cloud.Call, id string) (*Network, error) {
	n, err := s.seen(c, id)
	if err == nil && n.Project != c.Auth.Project.ID {
		return nil, refusal(http.StatusNotFound, "NetworkNotFound", "Network %s could not be found.", id)
	}
	return n, err
}

func (n *Network) seenBy(project string) bool {
	return n.Shared || n.External || n.Project == project
}

func networkView(n *Network) map[string]any {
	subnets := []string{}
	for _, id := range []string{n.subnet6, n.subnet4} {
		if id != "" {
			subnets = append(subnets, id)
		}
	}
	view := map[string]any{
		"id": n.ID, "name": n.Name, "tenant_id": n.Project, "project_id": n.Project, "admin_state_up": true, "mtu": 1450,
		"status": "ACTIVE", "subnets": subnets, "shared": n.Shared, "router:external": n.External,
		"availability_zone_hints": []any{}, "availability_zones": []any{}, "ipv4_address_scope": nil, "ipv6_address_scope": nil,
		"description": "", "port_security_enabled": true, "tags": []any{}, "revision_number": 2,
		"created_at": n.created.UTC().Format(cloud.Seconds), "updated_at": n.created.UTC().Format(cloud.Seconds),
	}
	if n.External {
		view["is_default"], view["mtu"] = false, 1500
	}
	return view
}

func (s *Neutron) listNetworks(c *cloud.Call) (*cloud.Answer, error) {
	views := []map[string]any{}
	for _, n := range s.networks {
		if n.seenBy(c.Auth.Project.ID) {
			views = append(views, networkView(n))
		}
	}
	return cloud.OK(map[string]any{"networks": chosen(views, c.Query)})
}

func (s *Neutron) showNetwork(_ *cloud.Call, n *Network) (*cloud.Answer, error) {
	return cloud.OK(map[string]any{"network": networkView(n)})
}

func subnetView(n *Network, id string, prefix netip.Prefix, dns []string) map[string]any {
	version, mode, suffix := 4, any(nil), "-v4"
	if prefix.Addr().Is6() {
		version, mode, suffix = 6, "slaac", "-v6"
	}
	name := n.Name + suffix
	if n.subnetName != "" {
		name = n.subnetName
	}
	return map[string]any{
		"id": id, "name": name, "tenant_id": n.Project, "project_id": n.Project, "network_id": n.ID,
		"ip_version": version, "subnetpool_id": nil, "enable_dhcp": true, "ipv6_ra_mode": mode, "ipv6_address_mode": mode,
		"gateway_ip": prefix.Masked().Addr().Next().String(), "cidr": prefix.String(), "host_routes": []any{},
		"allocation_pools": []any{map[string]any{"start": prefix.Masked().Addr().Next().Next().String(), "end": lastAddress(prefix).String()}},
		"dns_nameservers":  append([]string{}, dns...), "description": "", "service_types": []any{}, "tags": []any{}, "revision_number": 0,
		"created_at": n.created.UTC().Format(cloud.Seconds), "updated_at": n.created.UTC().Format(cloud.Seconds),
	}
}

func (s *Neutron) listSubnets(c *cloud.Call) (*cloud.Answer, error) {
	return cloud.OK(map[string]any{"subnets": chosen(s.subnets(c), c.Query)})
}

func (s *Neutron) showSubnet(c *cloud.Call) (*cloud.Answer, error) {
	for _, view := range s.subnets(c) {
		if view["id"] == c.Arg("id") {
			return cloud.OK(map[string]any{"subnet": view})
		}
	}
	return nil, refusal(http.StatusNotFound, "SubnetNotFound", "Subnet %s could not be found.", c.Arg("id"))
}

// subnets are those of the networks that a project may put servers on.
func (s *Neutron) subnets(c *cloud.Call) []map[string]any {
	views := []map[string]any{}
	for _, n := range s.networks {
		if !n.Shared && n.Project != c.Auth.Project.ID {
			continue
		}
		if n.subnet4 != "" {
			views = append(views, subnetView(n, n.subnet4, n.IPv4, n.DNS))
		}
		if n.subnet6 != "" {
			views = append(views, subnetView(n, n.subnet6, n.IPv6, nil))
		}
	}
	return views
}

// chosen applies Neutron's filters: every key names a field, several values
// are alternatives.
func chosen(views []map[string]any, query url.Values) []map[string]any {
	kept := []map[string]any{}
	for _, view := range views {
		if fitsQuery(view, query) {
			kept = append(kept, onlyFields(view, query["fields"]))
		}
	}
	return kept
}

// onlyFields drops the fields that were not asked for.
func onlyFields(view map[string]any, fields []string) map[string]any {
	if len(fields) == 0 {
		return view
	}
	narrow := map[string]any{}
	for _, field := range fields {
		if value, known := view[field]; known {
			narrow[field] = value
		}
	}
	return narrow
}

func fitsQuery(view map[string]any, query url.Values) bool {
	for key, values := range query {
		switch key {
		case "fields", "limit", "marker", "page_reverse", "sort_key", "sort_dir":
			continue
		}
		field, known := view[key]
		if !known {
			continue
		}
		text := fmt.Sprint(field)
		if field == nil {
			text = ""
		}
		if !slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, text) }) {
			return false
		}
	}
	return true
}

func lastAddress(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Masked().Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	if last.Is4() {
		return last.Prev()
	}
	return last
}

// createNetwork makes a network without subnets in the caller's project.
func (s *Neutron) createNetwork(c *cloud.Call) (*cloud.Answer, error) {
	var request struct {
		Network struct {
			Name string `json:"name"`
		} `json:"network"`
	}
	if err := c.Decode(&request); err != nil {
		return nil, err
	}
	n := &Network{
		ID: s.cloud.NewID(), Name: request.Network.Name, Project: c.Auth.Project.ID,
		created: s.cloud.Now(), used: map[netip.Addr]bool{},
	}
	s.networks = append(s.networks, n)
	view := networkView(n)
	view["is_default"] = false
	return cloud.Created(map[string]any{"network": view})
}

// createSubnet gives a network of the caller's project one subnet of each kind of
// addresses at most.
func (s *Neutron) createSubnet(c *cloud.Call) (*cloud.Answer, error) {
	var request struct {
		Subnet struct {
			Network string   `json:"network_id"`
			Name    string   `json:"name"`
			CIDR    string   `json:"cidr"`
			DNS     []string `json:"dns_nameservers"`
		} `json:"subnet"`
	}
	if err := c.Decode(&request); err != nil {
		return nil, err
	}
	asked := request.Subnet
	n, err := s.own(c, asked.Network)
	if err != nil {
		return nil, err
	}
	prefix, err := netip.ParsePrefix(asked.CIDR)
	if err != nil {
		return nil, refusal(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for cidr. Reason: '%s' is not a valid IP subnet.", asked.CIDR)
	}
	id, into := s.cloud.NewID(), &n.subnet4
	if prefix.Addr().Is6() {
		into = &n.subnet6
	}
	if *into != "" {
		return nil, cloud.BadRequest("The simulator has one subnet of each IP version in a network.")
	}
	*into = id
	if prefix.Addr().Is6() {
		n.IPv6 = prefix
	} else {
		n.IPv4, n.DNS = prefix, asked.DNS
	}
	n.subnetName = asked.Name
	return cloud.Created(map[string]any{"subnet": subnetView(n, id, prefix, asked.DNS)})
}

// deleteNetwork removes a network that no port uses, with its subnets.
func (s *Neutron) deleteNetwork(c *cloud.Call) (*cloud.Answer, error) {
	n, err := s.own(c, c.Arg("id"))
	if err != nil {
		return nil, err
	}
	var used []string
	for _, p := range s.ports {
		if p.Network == n {
			used = append(used, p.ID)
		}
	}
	if len(used) > 0 {
		return nil, refusal(http.StatusConflict, "NetworkInUse",
			"Unable to complete operation on network %s. There are one or more ports still in use on the network, id for these ports is: %s.", n.ID, strings.Join(used, ","))
	}
	s.networks = slices.DeleteFunc(s.networks, func(other *Network) bool { return other == n })
	return cloud.NoContent()
}
