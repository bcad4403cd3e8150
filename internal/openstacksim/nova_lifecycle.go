package openstacksim

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// plan enters a later step of a server; it is dropped when another step was
// planned meanwhile.
func (s *Simulator) plan(srv *server, d time.Duration, step func()) {
	srv.build++
	number := srv.build
	s.after(d, func() {
		if srv.build == number && !srv.gone() {
			step()
		}
	})
}

// begin starts the build of a new server.
func (s *Simulator) begin(srv *server) {
	srv.vm, srv.task = vmBuilding, taskScheduling
	srv.created, srv.updated = s.present, s.present
	srv.hostname = hostnameOf(srv.name)
	if !srv.planted {
		srv.fate = s.fateOf(srv)
	}
	srv.locked, srv.adminLocked = srv.fate.AdminLock, srv.fate.AdminLock
	total := s.options.BuildTime
	if srv.fate.BuildTime != 0 {
		total = max(srv.fate.BuildTime, 0)
	}
	s.plan(srv, total/4, func() { s.schedule(srv, total-total/4) })
}

// schedule picks the host and makes what the server needs there.
func (s *Simulator) schedule(srv *server, rest time.Duration) {
	if _, err := s.fitting(s.project(srv.project), srv.flavor, 1, 1); err != nil {
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
		s.fail(srv, FaultNoValidHost)
		return
	}
	srv.host, srv.zone, srv.task = host.Name, host.Zone, taskSpawning
	s.decide(srv, &srv.fate)
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
func (s *Simulator) equip(srv *server) string {
	for _, want := range srv.wantNetworks {
		if want.network != nil && want.network.External && want.network.Project != srv.project {
			return "Failed to allocate the network(s), not rescheduling."
		}
		p, err := s.bindPort(srv, want)
		if err != nil {
			return "Failed to allocate the network(s), not rescheduling."
		}
		srv.ports = append(srv.ports, p.id)
	}
	if srv.wantVolume != nil {
		v, problem := s.bootVolume(srv, *srv.wantVolume)
		if problem != "" {
			return problem
		}
		srv.volumes = append(srv.volumes, v.id)
	}
	return ""
}

func (s *Simulator) spawned(srv *server) {
	s.become(srv, vmActive)
	srv.launched = s.present
	if srv.fate.PowerOffAfter > 0 {
		s.plan(srv, srv.fate.PowerOffAfter, func() { s.powerOff(srv) })
	}
}

// powerOff is the guest shutting itself down; Nova notes it as a stop.
func (s *Simulator) powerOff(srv *server) {
	if srv.vm != vmActive || srv.task != "" {
		return
	}
	s.become(srv, vmStopped)
	s.act(srv, "stop", "req-"+s.newID())
}

// fail ends a build in ERROR.
func (s *Simulator) fail(srv *server, message string) {
	s.strip(srv)
	srv.host, srv.zone = "", ""
	srv.fault = &serverFault{code: 500, message: message, at: s.present}
	srv.build++
	s.become(srv, vmError)
}

// strip gives back what a server holds outside of Nova.
func (s *Simulator) strip(srv *server) {
	s.stripPorts(srv)
	for _, id := range srv.volumes {
		s.detachVolume(id)
	}
	srv.volumes = nil
}

func (s *Simulator) stripPorts(srv *server) {
	for _, id := range srv.ports {
		s.releasePort(id)
	}
	srv.ports = nil
}

// remove starts the deletion of a server that may be deleted.
func (s *Simulator) remove(srv *server, forced bool) {
	if (srv.task == taskDeleting || srv.vm == vmSoftDeleted) && !forced {
		return
	}
	if consume(&srv.fate.IgnoreDeletes) {
		return
	}
	if srv.host == "" && srv.vm != vmShelved {
		s.destroy(srv)
		return
	}
	if kept := s.weather.SoftDelete; kept > 0 && !forced {
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
		if consume(&srv.fate.FailDeletes) {
			// Nova gives the network back even so.
			s.stripPorts(srv)
			srv.fault = &serverFault{code: 500, message: "lab_delete_fail", at: s.present}
			s.become(srv, vmError)
			return
		}
		s.destroy(srv)
	})
}

func (s *Simulator) deleteTime(srv *server) time.Duration {
	if srv.fate.DeleteTime != 0 {
		return max(srv.fate.DeleteTime, 0)
	}
	return s.options.DeleteTime
}

// softDelete powers a server off and keeps it until its time is over or it is
// force-deleted, as Nova does with reclaim_instance_interval.
func (s *Simulator) softDelete(srv *server, kept time.Duration) {
	srv.task = taskSoftDeleting
	s.touch(srv)
	s.plan(srv, s.deleteTime(srv), func() {
		s.become(srv, vmSoftDeleted)
		s.plan(srv, kept, func() { s.destroy(srv) })
	})
}

// purge takes a server out of the database, as deleted ones are one day.
func (s *Simulator) purge(srv *server) {
	s.destroy(srv)
	delete(s.servers, srv.id)
	s.serverOrder = slices.DeleteFunc(s.serverOrder, func(other *server) bool { return other == srv })
}

// destroy ends a server at once.
func (s *Simulator) destroy(srv *server) {
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
	srv.terminated = s.present
	if s.shells != nil {
		s.shells.forget(srv.id)
	}
}
