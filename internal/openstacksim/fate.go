package openstacksim

import (
	"strconv"
	"time"
)

// Texts of faults as members see them.
const (
	// FaultNoValidHost is what the scheduler says, with its trailing space.
	FaultNoValidHost = "No valid host was found. "
	// FaultRetries starts what the conductor says when every host refused; the ID of the server follows.
	FaultRetries = "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance "
)

// Always as a number of times means without end.
const Always = -1

// Fate is what becomes of a server. The zero value is a server that builds,
// runs and is deleted in the times of [Options]; a negative duration means at once.
type Fate struct {
	// BuildTime and DeleteTime replace those of the options.
	BuildTime, DeleteTime time.Duration
	// Fault ends the build in ERROR with this message.
	Fault string
	// Hostless makes that fault come from the scheduler: no host, and a deletion that takes no time.
	Hostless bool
	// StuckBuilding keeps the server in BUILD for ever.
	StuckBuilding bool
	// StuckDeleting keeps the server in the task state deleting until it is force-deleted.
	StuckDeleting bool
	// IgnoreDeletes accepts that many deletions, forced ones too, and does nothing.
	IgnoreDeletes int
	// FailDeletes ends that many deletions in ERROR.
	FailDeletes int
	// AdminLock locks the server as an administrator does: its owner can not unlock it.
	AdminLock bool
	// PowerOffAfter is when the guest shuts itself down after ACTIVE; 0 means never.
	PowerOffAfter time.Duration
	// HiddenFor keeps a new server out of the listings for so long.
	HiddenFor time.Duration
	// MissingFor lets a GET of a new server give 404 for so long.
	MissingFor time.Duration
	// LingersFor keeps a deleted server in the listings, with the status DELETED, for so long.
	LingersFor time.Duration
	// Ghost keeps a deleted server in the listings as it was, while calls that name it answer 404.
	Ghost bool
	// Bare shows no metadata while the server is being deleted.
	Bare bool
	// Addressless shows no addresses.
	Addressless bool
	// Status replaces the status once the server has a host, whatever becomes of it.
	Status string
	// Unreadable makes GETs of the server answer 500, and keeps it out of listings.
	Unreadable bool
}

// SetFates decides about the servers created from now on. decide gets the
// server's number, counted from 1 over the simulator's life, and what was asked
// for; it must not call the simulator. Nil means no special fate.
func (s *Simulator) SetFates(decide func(n int, server ServerInfo) Fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fates = decide
}

// fateOf decides about a new server: the function of SetFates, the rules that
// ask for no host, and the metadata that openstack-lab's driver knows too. The
// lock is held.
func (s *Simulator) fateOf(srv *server) Fate {
	var fate Fate
	s.created++
	if s.fates != nil {
		fate = s.fates(s.created, s.serverInfo(srv))
	}
	s.decide(srv, &fate)
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
		fate.Fault, fate.Hostless = FaultRetries+srv.id+".", true
	}
	if n := labNumber(srv, "lab_delete_fail"); n > 0 {
		fate.FailDeletes = n
	}
	return fate
}

// decide lets the rules change the fate of a server: those with a host once it
// has one, the others before.
func (s *Simulator) decide(srv *server, fate *Fate) {
	s.endRules()
	info := s.serverInfo(srv)
	for _, rule := range s.rules {
		if s.meetsServer(rule, info) {
			rule.Fate(fate, info)
		}
	}
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

// consume takes one from a number of times and tells whether there was one.
func consume(times *int) bool {
	switch {
	case *times == 0:
		return false
	case *times > 0:
		*times--
	}
	return true
}
