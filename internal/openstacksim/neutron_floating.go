package openstacksim

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

type floatingIP struct {
	id, project, port, description string
	network                        *network
	address                        netip.Addr
	created, updated               time.Time
}

func (s *Simulator) floatingView(f *floatingIP) map[string]any {
	view := map[string]any{
		"id": f.id, "tenant_id": f.project, "project_id": f.project, "floating_ip_address": f.address.String(),
		"floating_network_id": f.network.ID, "router_id": nil, "port_id": nil, "fixed_ip_address": nil, "status": "DOWN",
		"description": f.description, "port_details": nil, "tags": []any{}, "revision_number": 0,
		"created_at": f.created.UTC().Format(withZone), "updated_at": f.updated.UTC().Format(withZone),
	}
	if p := s.ports[f.port]; p != nil {
		view["port_id"], view["fixed_ip_address"] = p.id, p.ipv4.String()
		view["router_id"] = stableUUID("router1")
		view["port_details"] = map[string]any{
			"name": p.name, "network_id": p.network.ID, "mac_address": p.mac, "admin_state_up": true,
			"status": p.status(), "device_id": p.device, "device_owner": p.owner,
		}
	}
	return view
}

func (s *Simulator) listFloatingIPs(c *call) (*answer, error) {
	var own []*floatingIP
	for _, f := range s.floatingIPs {
		if f.project == c.auth.project.ID {
			own = append(own, f)
		}
	}
	slices.SortFunc(own, func(a, b *floatingIP) int { return strings.Compare(a.id, b.id) })
	views := []map[string]any{}
	for _, f := range own {
		views = append(views, s.floatingView(f))
	}
	return ok(map[string]any{"floatingips": chosen(views, c.query)})
}

func (s *Simulator) ownFloatingIP(c *call) (*floatingIP, error) {
	f := s.floatingIPs[c.arg("id")]
	if f == nil || f.project != c.auth.project.ID {
		return nil, neutronRefusal(http.StatusNotFound, "FloatingIPNotFound", "Floating IP %s could not be found", c.arg("id"))
	}
	return f, nil
}

func (s *Simulator) showFloatingIP(c *call) (*answer, error) {
	f, err := s.ownFloatingIP(c)
	if err != nil {
		return nil, err
	}
	return ok(map[string]any{"floatingip": s.floatingView(f)})
}

func (s *Simulator) createFloatingIP(c *call) (*answer, error) {
	var request struct {
		FloatingIP struct {
			Network     string `json:"floating_network_id"`
			Port        string `json:"port_id"`
			Description string `json:"description"`
		} `json:"floatingip"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	project := c.auth.project
	n := s.findNetwork(project.ID, request.FloatingIP.Network)
	if n == nil {
		return nil, neutronRefusal(http.StatusNotFound, "NetworkNotFound", "Network %s could not be found.", request.FloatingIP.Network)
	}
	if !n.External {
		return nil, neutronRefusal(http.StatusBadRequest, "BadRequest", "Bad floatingip request: Network %s is not a valid external network.", n.ID)
	}
	owned := 0
	for _, f := range s.floatingIPs {
		if f.project == project.ID {
			owned++
		}
	}
	if quota := s.quotaOf(project).FloatingIPs; quota != Unlimited && owned >= quota {
		return nil, neutronRefusal(http.StatusConflict, "OverQuota", "Quota exceeded for resources: ['floatingip'].")
	}
	if err := s.mayAssociate(c, request.FloatingIP.Port, ""); err != nil {
		return nil, err
	}
	address, err := s.takeAddress(n, "")
	if err != nil {
		return nil, err
	}
	f := &floatingIP{
		id: s.newID(), project: project.ID, port: request.FloatingIP.Port, description: request.FloatingIP.Description,
		network: n, address: address, created: s.present, updated: s.present,
	}
	s.floatingIPs[f.id] = f
	return created(map[string]any{"floatingip": s.floatingView(f)})
}

// mayAssociate checks that a port exists and has no floating IP but that one.
func (s *Simulator) mayAssociate(c *call, portID, except string) error {
	if portID == "" {
		return nil
	}
	p, err := s.ownPort(c, portID)
	if err != nil {
		return err
	}
	for _, f := range s.floatingIPs {
		if f.port == p.id && f.id != except {
			return neutronRefusal(http.StatusConflict, "FloatingIPPortAlreadyAssociated",
				"Cannot associate floating IP %s (%s) with port %s using fixed IP %s, as that fixed IP already has a floating IP on external network %s.",
				f.address, f.id, p.id, p.ipv4, f.network.ID)
		}
	}
	return nil
}

func (s *Simulator) updateFloatingIP(c *call) (*answer, error) {
	f, err := s.ownFloatingIP(c)
	if err != nil {
		return nil, err
	}
	var request struct {
		FloatingIP struct {
			Port        *string `json:"port_id"`
			Description *string `json:"description"`
		} `json:"floatingip"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	wanted := ""
	if request.FloatingIP.Port != nil {
		wanted = *request.FloatingIP.Port
	}
	if err := s.mayAssociate(c, wanted, f.id); err != nil {
		return nil, err
	}
	if request.FloatingIP.Port != nil || strings.Contains(string(c.body), `"port_id"`) {
		f.port = wanted
	}
	if request.FloatingIP.Description != nil {
		f.description = *request.FloatingIP.Description
	}
	f.updated = s.present
	return ok(map[string]any{"floatingip": s.floatingView(f)})
}

func (s *Simulator) deleteFloatingIP(c *call) (*answer, error) {
	f, err := s.ownFloatingIP(c)
	if err != nil {
		return nil, err
	}
	s.freeAddress(f.network, f.address)
	delete(s.floatingIPs, f.id)
	return noContent()
}
