package neutron

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// FloatingIP is an address of an external network for a port.
type FloatingIP struct {
	ID, Description string
	Address         netip.Addr
	// Port is empty when it is not associated.
	Port string

	project          string
	network          *Network
	created, updated time.Time
}

// FloatingIPs lists them all, by ID. The lock is held.
func (s *Neutron) FloatingIPs() []*FloatingIP { return cloud.Sorted(s.floatingIPs, nil) }

// FloatingOf lists the floating addresses of a port. The lock is held.
func (s *Neutron) FloatingOf(p *Port) []netip.Addr {
	var addresses []netip.Addr
	for _, f := range s.floatingIPs {
		if f.Port == p.ID {
			addresses = append(addresses, f.Address)
		}
	}
	return addresses
}

func (s *Neutron) floatingView(f *FloatingIP) map[string]any {
	view := map[string]any{
		"id": f.ID, "tenant_id": f.project, "project_id": f.project, "floating_ip_address": f.Address.String(),
		"floating_network_id": f.network.ID, "router_id": nil, "port_id": nil, "fixed_ip_address": nil, "status": "DOWN",
		"description": f.Description, "port_details": nil, "tags": []any{}, "revision_number": 0,
		"created_at": f.created.UTC().Format(cloud.Seconds), "updated_at": f.updated.UTC().Format(cloud.Seconds),
	}
	if p := s.ports[f.Port]; p != nil {
		view["port_id"], view["fixed_ip_address"] = p.ID, p.IPv4.String()
		view["router_id"] = cloud.StableUUID("router1")
		view["port_details"] = map[string]any{
			"name": p.name, "network_id": p.Network.ID, "mac_address": p.MAC, "admin_state_up": true,
			"status": p.Status(), "device_id": p.Server, "device_owner": p.owner,
		}
	}
	return view
}

func (s *Neutron) ownFloatingIPs(project string) []*FloatingIP {
	return cloud.Sorted(s.floatingIPs, func(f *FloatingIP) bool { return f.project == project })
}

func (s *Neutron) listFloatingIPs(c *cloud.Call) (*cloud.Answer, error) {
	views := []map[string]any{}
	for _, f := range s.ownFloatingIPs(c.Auth.Project.ID) {
		views = append(views, s.floatingView(f))
	}
	return cloud.One("floatingips", chosen(views, c.Query))
}

func (s *Neutron) ownFloatingIP(c *cloud.Call) (*FloatingIP, error) {
	f := s.floatingIPs[c.Arg("id")]
	if f == nil || f.project != c.Auth.Project.ID {
		return nil, refusal(http.StatusNotFound, "FloatingIPNotFound", "Floating IP %s could not be found", c.Arg("id"))
	}
	return f, nil
}

func (s *Neutron) showFloatingIP(_ *cloud.Call, f *FloatingIP) (*cloud.Answer, error) {
	return cloud.OK(map[string]any{"floatingip": s.floatingView(f)})
}

func (s *Neutron) createFloatingIP(c *cloud.Call) (*cloud.Answer, error) {
	var request struct {
		FloatingIP struct {
			Network     string `json:"floating_network_id"`
			Port        string `json:"port_id"`
			Description string `json:"description"`
		} `json:"floatingip"`
	}
	if err := c.Decode(&request); err != nil {
		return nil, err
	}
	project := c.Auth.Project
	n, err := s.seen(c, request.FloatingIP.Network)
	if err != nil {
		return nil, err
	}
	if !n.External {
		return nil, refusal(http.StatusBadRequest, "BadRequest", "Bad floatingip request: Network %s is not a valid external network.", n.ID)
	}
	if quota := s.cloud.Quota(project).FloatingIPs; quota != fault.Unlimited && len(s.ownFloatingIPs(project.ID)) >= quota {
		return nil, refusal(http.StatusConflict, "OverQuota", "Quota exceeded for resources: ['floatingip'].")
	}
	if err := s.mayAssociate(c, request.FloatingIP.Port, ""); err != nil {
		return nil, err
	}
	address, err := s.takeAddress(n, "")
	if err != nil {
		return nil, err
	}
	f := &FloatingIP{
		ID: s.cloud.NewID(), project: project.ID, Port: request.FloatingIP.Port, Description: request.FloatingIP.Description,
		network: n, Address: address, created: s.cloud.Now(), updated: s.cloud.Now(),
	}
	s.floatingIPs[f.ID] = f
	return cloud.Created(map[string]any{"floatingip": s.floatingView(f)})
}

// mayAssociate checks that a port exists and has no floating IP but that one.
func (s *Neutron) mayAssociate(c *cloud.Call, portID, except string) error {
	if portID == "" {
		return nil
	}
	p, err := s.ownPort(c, portID)
	if err != nil {
		return err
	}
	for _, f := range s.floatingIPs {
		if f.Port == p.ID && f.ID != except {
			return refusal(http.StatusConflict, "FloatingIPPortAlreadyAssociated",
				"Cannot associate floating IP %s (%s) with port %s using fixed IP %s, as that fixed IP already has a floating IP on external network %s.",
				f.Address, f.ID, p.ID, p.IPv4, f.network.ID)
		}
	}
	return nil
}

func (s *Neutron) updateFloatingIP(c *cloud.Call, f *FloatingIP) (*cloud.Answer, error) {
	var request struct {
		FloatingIP struct {
			Port        *string `json:"port_id"`
			Description *string `json:"description"`
		} `json:"floatingip"`
	}
	if err := c.Decode(&request); err != nil {
		return nil, err
	}
	wanted := ""
	if request.FloatingIP.Port != nil {
		wanted = *request.FloatingIP.Port
	}
	if err := s.mayAssociate(c, wanted, f.ID); err != nil {
		return nil, err
	}
	if request.FloatingIP.Port != nil || strings.Contains(string(c.Body), `"port_id"`) {
		f.Port = wanted
	}
	if request.FloatingIP.Description != nil {
		f.Description = *request.FloatingIP.Description
	}
	f.updated = s.cloud.Now()
	return cloud.OK(map[string]any{"floatingip": s.floatingView(f)})
}

func (s *Neutron) deleteFloatingIP(_ *cloud.Call, f *FloatingIP) (*cloud.Answer, error) {
	s.freeAddress(f.network, f.Address)
	delete(s.floatingIPs, f.ID)
	return cloud.NoContent()
}
