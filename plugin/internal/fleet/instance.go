package fleet

import "time"

// stage is how far an instance has come in its life.
type stage int

const (
	// queued: the name is reserved, no server exists.
	queued stage = iota
	// doubtful: a creation was sent and its outcome is not known.
	doubtful
	// live: a server exists, building or running.
	live
	// condemned: the server is to be deleted, until it is proved gone.
	condemned
	// quarantined: deletion keeps failing; it holds no slot any more.
	quarantined
	// gone: no server exists any more; one last report is due.
	gone
)

// instance is one server of the group, from the reservation of its name to the
// proof that it is gone.
type instance struct {
	name string
	id   string // the cloud's, once known
	seq  int    // order of reservation

	stage  stage
	server Server // as last seen
	up     bool   // was seen running
	seen   bool   // was seen in a listing or by a GET
	doomed bool   // to be deleted as soon as a creation under way is settled
	posted bool   // a creation was sent at least once
	stray  bool   // a double that was never reported and never will be
	epoch  int    // pace epoch in which its creation started
	round  int    // width round in which its creation was sent
	filled bool   // while its creation was under way, no more were allowed

	reserved   time.Time // when the name was reserved
	born       time.Time // when its creation was accepted or its server first seen
	sent       time.Time // when the last creation was sent
	suspected  time.Time // since when it is Suspect
	confirmed  time.Time // when a GET last answered about it missing
	looked     time.Time // when the cloud last said anything about it
	deathBegan time.Time // since when it is condemned
	why        string    // why it is condemned

	busy     bool      // a job works on it
	due      time.Time // when the next job may start
	attempts int       // attempts of the present kind of job
	accepted bool      // the cloud took its deletion on
	tried    time.Time // when its deletion was last tried
	complain string    // last deletion error that was logged

	last State // what was last reported; empty: nothing yet
}

// state is what to report of the instance; notReportable for what holds no
// slot.
func (i *instance) state() State {
	switch i.stage {
	case queued, doubtful:
		if i.doomed {
			return BeingDeleted
		}
		return Creating
	case live:
		if i.up {
			return InUse
		}
		return Creating
	case condemned:
		return BeingDeleted
	case gone:
		// A server that was never reported must appear once as something that
		// the host counts, or the slot that it was requested with is lost.
		if i.last == notReportable {
			return BeingDeleted
		}
		return WasDeleted
	case quarantined:
		return notReportable
	default:
		return notReportable
	}
}

// starting reports whether a creation is under way whose result will tell
// whether the cloud can make servers.
func (i *instance) starting() bool {
	switch i.stage {
	case queued:
		return i.busy
	case doubtful:
		return true
	case live:
		return !i.up
	case condemned, quarantined, gone:
		return false
	default:
		return false
	}
}
