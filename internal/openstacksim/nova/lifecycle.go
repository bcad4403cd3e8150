package nova

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// plan enters a later step of a server; it is dropped when another step was
// planned meanwhile.
func (s *Nova) plan(srv *server, d time.Duration, step func()) {
	srv.build++
	number := srv.build
	s.cloud.After(d, func() {
		if srv.build == number && !srv.gone() {
			step()
		}
	})
}

// begin starts the build of a new server.
func (s *Nova) begin(srv *server) {
	srv.vm, srv.task = vmBuilding, taskScheduling
	srv.created, srv.updated = s.cloud.Now(), s.cloud.Now()
	srv.hostname = hostnameOf(srv.name)
	if !srv.planted {
		srv.fate = s.fateOf(srv)
	}
	srv.locked, srv.adminLocked = srv.fate.AdminLock, srv.fate.AdminLock
	total := s.settings.BuildTime
	if srv.fate.BuildTime != 0 {
		total = max(srv.fate.BuildTime, 0)
	}
	s.plan(srv, total/4, func() { s.schedule(srv, total-total/4) })
}

// schedule picks the host and makes what the server needs there.
func (s *Nova) schedule(srv *server, rest time.Duration) {
	if _, err := s.fitting(s.cloud.Project(srv.project), srv.flavor, 1, 1); err != nil {
		s.fail(srv, err.Error())
		srv.fault.code = http.StatusRequestEntityTooLarge
		return
	}
	if srv.fate.Hostless && srv.fate.Fault != "" {
		s.fail(srv, srv.fate.Fault)
		return
	}
	host, found := s.place(srv)
	if !found {
		s.fail(srv, fault.NoValidHost)
		return
	}
	srv.host, srv.zone, srv.task = host.Name, host.Zone, taskSpawning
	s.cloud.Decide(&srv.fate, s.info(srv))
	s.touch(srv)
	if problem := s.equip(srv); problem != "" {
		s.fail(srv, fmt.Sprintf("Build of instance %s aborted: %s", srv.id, problem))
		return
	}
	if srv.fate.StuckBuilding {
		return
	}
	s.plan(srv, rest, func() {
		if srv.fate.Fault != "" {
			s.fail(srv, srv.fate.Fault)
			return
		}
		s.spawned(srv)
	})
}

// equip makes the ports and the volume, or says why not.
func (s *Nova) equip(srv *server) string {
	const refused = "Failed to allocate the network(s), not rescheduling."
	for _, want := range srv.wantNetworks {
		if want.Network != nil && want.Network.External && want.Network.Project != srv.project {
			return refused
		}
		p, err := s.neutron.Bind(want, srv.id, srv.zone, srv.project, srv.wantGroups)
		if err != nil {
			return refused
		}
		srv.ports = append(srv.ports, p.ID)
	}
	if srv.wantVolume != nil {
		id, problem := s.cinder.Boot(*srv.wantVolume, srv.id, srv.project, srv.user)
		if problem != "" {
			return problem
		}
		srv.volumes = append(srv.volumes, id)
	}
	return ""
}

func (s *Nova) spawned(srv *server) {
	s.become(srv, vmActive)
	srv.launched = s.cloud.Now()
	if srv.fate.PowerOffAfter > 0 {
		s.plan(srv, srv.fate.PowerOffAfter, func() { s.powerOff(srv) })
	}
}

// powerOff is the guest shutting itself down; Nova notes it as a stop.
func (s *Nova) powerOff(srv *server) {
	if srv.vm != vmActive || srv.task != "" {
		return
	}
	s.become(srv, vmStopped)
	s.act(srv, "stop", "req-"+s.cloud.NewID())
}

// fail ends a build in ERROR.
func (s *Nova) fail(srv *server, message string) {
	s.strip(srv)
	srv.host, srv.zone = "", ""
	srv.fault = &serverFault{code: 500, message: message, at: s.cloud.Now()}
	srv.build++
	s.become(srv, vmError)
}

// strip gives back what a server holds outside of Nova.
func (s *Nova) strip(srv *server) {
	s.stripPorts(srv)
	for _, id := range srv.volumes {
		s.cinder.Release(id)
	}
	srv.volumes = nil
}

func (s *Nova) stripPorts(srv *server) {
	for _, id := range srv.ports {
		s.neutron.Release(id)
	}
	srv.ports = nil
}

// remove starts the deletion of a server that may be deleted.
func (s *Nova) remove(srv *server, forced bool) {
	if (srv.task == taskDeleting || srv.vm == vmSoftDeleted) && !forced {
		return
	}
	if fault.Consume(&srv.fate.IgnoreDeletes) {
		return
	}
	if srv.host == "" && srv.vm != vmShelved {
		s.destroy(srv)
		return
	}
	if kept := s.cloud.Condition.SoftDelete; kept > 0 && !forced {
		s.softDelete(srv, kept)
		return
	}
	srv.task = taskDeleting
	s.touch(srv)
	if srv.fate.StuckDeleting && !forced {
		srv.build++
		return
	}
	s.plan(srv, s.deleteTime(srv), func() {
		if fault.Consume(&srv.fate.FailDeletes) {
			// Nova gives the network back even so.
			s.stripPorts(srv)
			srv.fault = &serverFault{code: 500, message: "lab_delete_fail", at: s.cloud.Now()}
			s.become(srv, vmError)
			return
		}
		s.destroy(srv)
	})
}

func (s *Nova) deleteTime(srv *server) time.Duration {
	if srv.fate.DeleteTime != 0 {
		return max(srv.fate.DeleteTime, 0)
	}
	return s.settings.DeleteTime
}

// softDelete powers a server off and keeps it until its time is over or it is
// force-deleted, as Nova does with reclaim_instance_interval.
func (s *Nova) softDelete(srv *server, kept time.Duration) {
	srv.task = taskSoftDeleting
	s.touch(srv)
	s.plan(srv, s.deleteTime(srv), func() {
		s.become(srv, vmSoftDeleted)
		s.plan(srv, kept, func() { s.destroy(srv) })
	})
}

// purge takes a server out of the database, as deleted ones are one day.
func (s *Nova) purge(srv *server) {
	s.destroy(srv)
	delete(s.servers, srv.id)
	s.order = slices.DeleteFunc(s.order, func(other *server) bool { return other == srv })
}

// destroy ends a server at once.
func (s *Nova) destroy(srv *server) {
	if srv.gone() {
		return
	}
	s.strip(srv)
	if srv.fate.Ghost {
		srv.shown = srv.status()
	} else {
		srv.shown, srv.fate.Status = "", ""
	}
	s.become(srv, vmDeleted)
	srv.terminated = s.cloud.Now()
	if s.Destroyed != nil {
		s.Destroyed(srv.id)
	}
}

// Host is where servers run; Zone is its availability zone.
type Host struct {
	Name, Zone string
	VCPUs, RAM int
}

// load is what runs on a host; fellows are servers of the group at hand.
type load struct{ servers, cores, ram, fellows int }

// loads counts what runs on each host, by the host's name.
func (s *Nova) loads(group *ServerGroup) map[string]load {
	loads := map[string]load{}
	for _, srv := range s.order {
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
func (s *Nova) place(srv *server) (Host, bool) {
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
