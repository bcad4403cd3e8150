package openstacksim

import "strings"

// load is what runs on a host; fellows are servers of the group at hand.
type load struct{ servers, cores, ram, fellows int }

// loads counts what runs on each host, by the host's name.
func (s *Simulator) loads(group *ServerGroup) map[string]load {
	loads := map[string]load{}
	for _, srv := range s.serverOrder {
		if srv.gone() || srv.host == "" {
			continue
		}
		l := loads[srv.host]
		l.servers++
		l.cores += srv.flavor.VCPUs
		l.ram += srv.flavor.RAM
		if group != nil && srv.group == group {
			l.fellows++
		}
		loads[srv.host] = l
	}
	return loads
}

// place picks the emptiest host that has room and suits the zone and the group.
func (s *Simulator) place(srv *server) (Host, bool) {
	loads := s.loads(srv.group)
	policy, grouped := "", 0
	if srv.group != nil {
		policy = srv.group.Policy
	}
	for _, l := range loads {
		grouped += l.fellows
	}
	var best *Host
	for i := range s.hosts {
		h := &s.hosts[i]
		l := loads[h.Name]
		if !hasRoom(*h, l, srv) || !suits(policy, l, grouped) {
			continue
		}
		if best == nil || better(policy, l, loads[best.Name]) {
			best = h
		}
	}
	if best == nil {
		return Host{}, false
	}
	return *best, true
}

func hasRoom(h Host, l load, srv *server) bool {
	return l.cores+srv.flavor.VCPUs <= h.VCPUs && l.ram+srv.flavor.RAM <= h.RAM &&
		(srv.wantZone == "" || h.Zone == srv.wantZone)
}

// suits tells whether a hard policy allows one more server of the group there.
func suits(policy string, l load, grouped int) bool {
	switch policy {
	case "anti-affinity":
		return l.fellows == 0
	case "affinity":
		return grouped == 0 || l.fellows > 0
	default:
		return true
	}
}

// better tells whether a host is preferable to the best so far.
func better(policy string, l, best load) bool {
	if strings.HasPrefix(policy, "soft-") && l.fellows != best.fellows {
		return (policy == "soft-affinity") == (l.fellows > best.fellows)
	}
	return l.servers < best.servers
}
