package openstacksim

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// createNetwork makes a network without subnets in the caller's project.
func (s *Simulator) createNetwork(c *call) (*answer, error) {
	var request struct {
		Network struct {
			Name string `json:"name"`
		} `json:"network"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	n := &network{Network: Network{ID: s.newID(), Name: request.Network.Name, Project: c.auth.project.ID}, created: s.present, used: map[netip.Addr]bool{}}
	s.networks = append(s.networks, n)
	view := networkView(n)
	view["is_default"] = false
	return created(map[string]any{"network": view})
}

// createSubnet gives a network of the caller's project one subnet of each kind of
// addresses at most.
func (s *Simulator) createSubnet(c *call) (*answer, error) {
	var request struct {
		Subnet struct {
			Network string   `json:"network_id"`
			Name    string   `json:"name"`
			CIDR    string   `json:"cidr"`
			DNS     []string `json:"dns_nameservers"`
		} `json:"subnet"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	asked := request.Subnet
	n := s.findNetwork(c.auth.project.ID, asked.Network)
	if n == nil || n.Project != c.auth.project.ID {
		return nil, neutronRefusal(http.StatusNotFound, "NetworkNotFound", "Network %s could not be found.", asked.Network)
	}
	prefix, err := netip.ParsePrefix(asked.CIDR)
	if err != nil {
		return nil, neutronRefusal(http.StatusBadRequest, "HTTPBadRequest", "Invalid input for cidr. Reason: '%s' is not a valid IP subnet.", asked.CIDR)
	}
	id, into := s.newID(), &n.subnet4
	if prefix.Addr().Is6() {
		into = &n.subnet6
	}
	if *into != "" {
		return nil, badRequest("The simulator has one subnet of each IP version in a network.")
	}
	*into = id
	if prefix.Addr().Is6() {
		n.IPv6 = prefix
	} else {
		n.IPv4, n.DNS = prefix, asked.DNS
	}
	n.subnetName = asked.Name
	return created(map[string]any{"subnet": subnetView(n, id, prefix, asked.DNS)})
}

// deleteNetwork removes a network that no port uses, with its subnets.
func (s *Simulator) deleteNetwork(c *call) (*answer, error) {
	id := c.arg("id")
	n := s.findNetwork(c.auth.project.ID, id)
	if n == nil || n.Project != c.auth.project.ID {
		return nil, neutronRefusal(http.StatusNotFound, "NetworkNotFound", "Network %s could not be found.", id)
	}
	var used []string
	for _, p := range s.ports {
		if p.network == n {
			used = append(used, p.id)
		}
	}
	if len(used) > 0 {
		return nil, neutronRefusal(http.StatusConflict, "NetworkInUse",
			"Unable to complete operation on network %s. There are one or more ports still in use on the network, id for these ports is: %s.", id, strings.Join(used, ","))
	}
	s.networks = slices.DeleteFunc(s.networks, func(other *network) bool { return other == n })
	return noContent()
}
