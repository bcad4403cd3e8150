package openstacksim

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

type network struct {
	Network
	subnet4, subnet6 string // IDs
	subnetName       string // as asked for
	created          time.Time
	used             map[netip.Addr]bool
}

func (s *Simulator) neutronRoutes() []route {
	const root = "/network/v2.0"
	return []route{
		{http.MethodGet, "/network", OpNetworkInfo, true, s.neutronVersions},
		{http.MethodGet, root, OpNetworkInfo, true, s.neutronVersions},
		{http.MethodGet, root + "/extensions", OpNetworkInfo, false, s.neutronExtensions},
		{http.MethodGet, root + "/networks", OpNetworks, false, s.listNetworks},
		{http.MethodPost, root + "/networks", OpNetworks, false, s.createNetwork},
		{http.MethodGet, root + "/networks/{id}", OpNetworks, false, s.showNetwork},
		{http.MethodDelete, root + "/networks/{id}", OpNetworks, false, s.deleteNetwork},
		{http.MethodGet, root + "/subnets", OpSubnets, false, s.listSubnets},
		{http.MethodPost, root + "/subnets", OpSubnets, false, s.createSubnet},
		{http.MethodGet, root + "/subnets/{id}", OpSubnets, false, s.showSubnet},
		{http.MethodGet, root + "/security-groups", OpSecurityGroup, false, s.listSecurityGroups},
		{http.MethodGet, root + "/security-groups/{id}", OpSecurityGroup, false, s.showSecurityGroup},
		{http.MethodGet, root + "/ports", OpPorts, false, s.listPorts},
		{http.MethodPost, root + "/ports", OpPorts, false, s.createPort},
		{http.MethodGet, root + "/ports/{id}", OpPorts, false, s.showPort},
		{http.MethodDelete, root + "/ports/{id}", OpPorts, false, s.deletePort},
		{http.MethodGet, root + "/floatingips", OpFloatingIPs, false, s.listFloatingIPs},
		{http.MethodPost, root + "/floatingips", OpFloatingIPs, false, s.createFloatingIP},
		{http.MethodGet, root + "/floatingips/{id}", OpFloatingIPs, false, s.showFloatingIP},
		{http.MethodPut, root + "/floatingips/{id}", OpFloatingIPs, false, s.updateFloatingIP},
		{http.MethodDelete, root + "/floatingips/{id}", OpFloatingIPs, false, s.deleteFloatingIP},
	}
}

func neutronError(e *apiError) *answer {
	kind := e.kind
	if kind == "" || kind == kindNoRoute || kind == kindNoMethod {
		kind = map[int]string{
			http.StatusNotFound: "HTTPNotFound", http.StatusConflict: "Conflict", http.StatusForbidden: "PolicyNotAuthorized",
			http.StatusBadRequest: "HTTPBadRequest", http.StatusMethodNotAllowed: "HTTPMethodNotAllowed",
		}[e.status]
	}
	return &answer{status: e.status, body: map[string]any{"NeutronError": map[string]any{
		"type": kind, "message": e.message, "detail": "",
	}}}
}

// neutronRefusal is a refusal with the type that Neutron gives it.
func neutronRefusal(status int, kind, format string, args ...any) error {
	return &apiError{status: status, kind: kind, message: fmt.Sprintf(format, args...)}
}

func (s *Simulator) neutronVersions(c *call) (*answer, error) {
	c.plain = true
	return ok(map[string]any{"versions": []any{map[string]any{
		"id": "v2.0", "status": "CURRENT", "links": []link{{Rel: "self", Href: c.root(serviceNetwork) + "/v2.0/"}},
	}}})
}

func (s *Simulator) neutronExtensions(*call) (*answer, error) {
	names := []any{}
	for _, alias := range []string{"router", "external-net", "security-group", "standard-attr-description", "project-id"} {
		names = append(names, map[string]any{"alias": alias, "name": alias, "description": "", "links": []any{}})
	}
	return ok(map[string]any{"extensions": names})
}

func (s *Simulator) plantNetwork(n Network) error {
	planted := &network{Network: n, created: s.present, used: map[netip.Addr]bool{}}
	planted.ID = orElse(n.ID, s.newID)
	planted.Project = s.projectID(n.Project)
	if n.IPv4.IsValid() {
		if !n.IPv4.Addr().Is4() {
			return fmt.Errorf("openstacksim: network %s: %s is not IPv4", n.Name, n.IPv4)
		}
		planted.subnet4 = s.newID()
	}
	if n.IPv6.IsValid() {
		planted.subnet6 = s.newID()
	}
	s.networks = append(s.networks, planted)
	return nil
}

// findNetwork gives a network that a project sees.
func (s *Simulator) findNetwork(project, id string) *network {
	for _, n := range s.networks {
		if n.ID == id && n.seenBy(project) {
			return n
		}
	}
	return nil
}

func (n *network) seenBy(project string) bool {
	return n.Shared || n.External || n.Project == project
}

func networkView(n *network) map[string]any {
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
		"created_at": n.created.UTC().Format(withZone), "updated_at": n.created.UTC().Format(withZone),
	}
	if n.External {
		view["is_default"], view["mtu"] = false, 1500
	}
	return view
}

func (s *Simulator) listNetworks(c *call) (*answer, error) {
	views := []map[string]any{}
	for _, n := range s.networks {
		if n.seenBy(c.auth.project.ID) {
			views = append(views, networkView(n))
		}
	}
	return ok(map[string]any{"networks": chosen(views, c.query)})
}

func (s *Simulator) showNetwork(c *call) (*answer, error) {
	n := s.findNetwork(c.auth.project.ID, c.arg("id"))
	if n == nil {
		return nil, neutronRefusal(http.StatusNotFound, "NetworkNotFound", "Network %s could not be found.", c.arg("id"))
	}
	return ok(map[string]any{"network": networkView(n)})
}

func subnetView(n *network, id string, prefix netip.Prefix, dns []string) map[string]any {
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
		"created_at": n.created.UTC().Format(withZone), "updated_at": n.created.UTC().Format(withZone),
	}
}

func (s *Simulator) listSubnets(c *call) (*answer, error) {
	return ok(map[string]any{"subnets": chosen(s.subnets(c), c.query)})
}

func (s *Simulator) showSubnet(c *call) (*answer, error) {
	for _, view := range s.subnets(c) {
		if view["id"] == c.arg("id") {
			return ok(map[string]any{"subnet": view})
		}
	}
	return nil, neutronRefusal(http.StatusNotFound, "SubnetNotFound", "Subnet %s could not be found.", c.arg("id"))
}

// subnets are those of the networks that a project may put servers on.
func (s *Simulator) subnets(c *call) []map[string]any {
	views := []map[string]any{}
	for _, n := range s.networks {
		if !n.Shared && n.Project != c.auth.project.ID {
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
