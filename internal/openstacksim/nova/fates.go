package nova

import (
	"strconv"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// SetFates decides about the servers created from now on. decide gets the
// server's number, counted from 1 over the simulator's life, and what was asked
// for; it must not call the simulator. Nil means no special fate.
func (s *Nova) SetFates(decide func(n int, server fault.ServerInfo) fault.Fate) {
	s.cloud.Do(func() { s.fates = decide })
}

// fateOf decides about a new server: the function of SetFates, the rules that
// ask for no host, and the metadata that openstack-lab's driver knows too. The
// lock is held.
func (s *Nova) fateOf(srv *server) fault.Fate {
	var fate fault.Fate
	s.created++
	if s.fates != nil {
		fate = s.fates(s.created, s.info(srv))
	}
	s.cloud.Decide(&fate, s.info(srv))
	if d, given := labSeconds(srv, "lab_spawn_seconds"); given {
		fate.BuildTime = d
	}
	if d, given := labSeconds(srv, "lab_delete_seconds"); given {
		fate.DeleteTime = d
	}
	if d, given := labSeconds(srv, "lab_poweroff_after"); given {
		fate.PowerOffAfter = d
	}
	if text := srv.metadata["lab_spawn_fail"]; text != "" {
		fate.Fault = "Build of instance " + srv.id + " aborted: " + text
	}
	if n := labNumber(srv, "lab_spawn_reschedule"); n >= len(s.hosts) && n > 0 {
		fate.Fault, fate.Hostless = fault.RetriesExceeded+srv.id+".", true
	}
	if n := labNumber(srv, "lab_delete_fail"); n > 0 {
		fate.FailDeletes = n
	}
	return fate
}

func labSeconds(srv *server, key string) (time.Duration, bool) {
	seconds, err := strconv.ParseFloat(srv.metadata[key], 64)
	if err != nil {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

func labNumber(srv *server, key string) int {
	n, err := strconv.Atoi(srv.metadata[key])
	if err != nil {
		return 0
	}
	return n
}
