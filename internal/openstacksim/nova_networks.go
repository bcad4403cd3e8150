package openstacksim

import (
	"encoding/json"
	"net/http"
	"strings"
)

type requestedNetwork struct {
	UUID    string `json:"uuid"`
	Port    string `json:"port"`
	FixedIP string `json:"fixed_ip"`
}

// draftNetworks resolves the networks and security groups of a create.
func (s *Simulator) draftNetworks(c *call, srv *server, request serverRequest) error {
	wanted, err := s.wantedNetworks(c, request.Networks)
	if err != nil {
		return err
	}
	srv.wantNetworks = wanted
	for _, group := range request.SecurityGroups {
		found := s.findSecurityGroup(c.auth.project.ID, group.Name)
		if len(found) == 0 {
			return badRequest("Unable to find security_group with name or id '%s'", group.Name)
		}
		if len(found) > 1 {
			return conflict("Multiple security_groups found matching '%s'. Use an ID to be more specific.", group.Name)
		}
		srv.wantGroups = append(srv.wantGroups, found[0].Name)
	}
	if len(srv.wantGroups) == 0 {
		srv.wantGroups = []string{"default"}
	}
	return nil
}

func (s *Simulator) wantedNetworks(c *call, raw json.RawMessage) ([]wantedNetwork, error) {
	if text := string(raw); text == "" || text == `"auto"` {
		return s.automaticNetwork(c)
	} else if text == `"none"` {
		return nil, nil
	}
	var requested []requestedNetwork
	if err := json.Unmarshal(raw, &requested); err != nil {
		return nil, invalid("networks", strings.Trim(pyRepr(raw), "'"), pyRepr(raw)+" is not valid under any of the given schemas")
	}
	if len(requested) == 0 {
		return s.automaticNetwork(c)
	}
	var wanted []wantedNetwork
	for _, r := range requested {
		if r.Port != "" {
			p := s.ports[r.Port]
			if p == nil || p.project != c.auth.project.ID {
				return nil, badRequest("Port id %s could not be found.", r.Port)
			}
			if p.device != "" {
				return nil, conflict("Port %s is still in use.", r.Port)
			}
			wanted = append(wanted, wantedNetwork{network: p.network, port: p.id})
			continue
		}
		n := s.findNetwork(c.auth.project.ID, r.UUID)
		if n == nil {
			return nil, badRequest("Network %s could not be found.", r.UUID)
		}
		if !n.IPv4.IsValid() && !n.IPv6.IsValid() {
			return nil, badRequest("Network %s requires a subnet in order to boot instances on.", r.UUID)
		}
		wanted = append(wanted, wantedNetwork{network: n, fixedIP: r.FixedIP})
	}
	return wanted, nil
}

// automaticNetwork is the only network of a project, if it is the only one.
func (s *Simulator) automaticNetwork(c *call) ([]wantedNetwork, error) {
	var wanted []wantedNetwork
	for _, n := range s.networks {
		if !n.External && (n.Shared || n.Project == c.auth.project.ID) {
			wanted = append(wanted, wantedNetwork{network: n})
		}
	}
	if len(wanted) > 1 {
		return nil, refuse(http.StatusConflict, "Multiple possible networks found, use a Network ID to be more specific.")
	}
	return wanted, nil
}
