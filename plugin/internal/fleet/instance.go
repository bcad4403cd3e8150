package fleet

import (
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/backoff"
)

// stage is how far an instance has come in its life.
type stage int

const (
	// queued: the name is reserved, and no server exists.
	queued stage = iota
	// doubtful: a creation was sent, and its outcome is not known.
	doubtful
	// lost: no server was found in time, and the slot went to another name. The
	// server may still turn up.
	lost
	// live: a server exists, building or running.
	live
	// condemned: the server is to be deleted, until it is proved gone.
	condemned
	// kept: the cloud keeps the deleted server; it holds no slot.
	kept
	// quarantined: deletion keeps failing; it holds no slot any more.
	quarantined
	// gone: no server exists any more; one last report is due.
	gone
)

// instance is one server of the group, from the reservation of its name to the
// proof that it is gone.
type instance struct {
	name    string
	id      string // the cloud's, once known
	request string // what the cloud's operators find its creation by
	seq     int    // order of reservation

	stage  stage
	server Server           // as last seen
	sent   *backoff.Request // its creation, until the outcome is known; nil for a discovered server
	up     bool             // was seen running
	seen   bool             // the cloud is known to know it
	// A listing lacked it together with servers that were not deleted, so that only
	// a GET of its own proves it gone.
	concealed bool
	doomed    bool   // to be deleted as soon as a creation under way is settled
	silent    bool   // is not reported: a double, or one whose slot another name has
	unsure    bool   // the last word about it was Unknown
	words     string // what the cloud last said of it

	reserved   time.Time // when the name was reserved
	born       time.Time // when its creation was accepted or its server first seen
	uncertain  time.Time // since when its creation is in doubt
	suspected  time.Time // since when it is Suspect
	confirmed  time.Time // when a GET last answered about it missing
	looked     time.Time // when the cloud last said anything about it
	sure       time.Time // when what it said was clear
	deathBegan time.Time // since when it is condemned
	accepted   time.Time // when the cloud took its deletion on
	forced     bool      // that deletion was forced
	tried      time.Time // when its deletion was last tried
	why        string    // why it is condemned
	complain   string    // last deletion error that was logged

	sending  bool   // its creation is under way
	removing bool   // a deletion is under way
	abandon  func() // ends that
	attempts int    // attempts of the present kind of job
	losses   int    // names that had its slot before and were not found
	plans    [kinds]int

	last State // what was last reported; empty: nothing yet
}

// state is what to report of the instance; notReportable for what holds no
// slot.
func (i *instance) state() State {
	switch {
	case i.silent:
		return notReportable
	case i.stage == gone || i.stage == lost || i.stage == kept:
		// A server that was never reported must appear once as something that
		// the host counts, or the slot that it was requested with is lost.
		if i.last == notReportable {
			return BeingDeleted
		}
		return WasDeleted
	case i.stage == queued || i.stage == doubtful:
		if i.doomed {
			return BeingDeleted
		}
		return Creating
	case i.stage == live && i.up:
		return InUse
	case i.stage == live:
		return Creating
	case i.stage == condemned:
		return BeingDeleted
	default: // quarantined
		return notReportable
	}
}

// holdsSlot reports whether the host counts the instance.
func (i *instance) holdsSlot() bool {
	switch i.stage {
	case queued, doubtful, live, condemned:
		return !i.silent
	case lost, kept, quarantined, gone:
		return false
	default:
		return false
	}
}

// exists reports whether the cloud has a server for the instance, or may have.
func (i *instance) exists() bool {
	switch i.stage {
	case queued:
		return i.sending
	case doubtful, live, condemned, quarantined:
		return true
	case lost, kept, gone:
		return false
	default:
		return false
	}
}

// borne reports whether the cloud has room for the server of the instance.
func (i *instance) borne() bool {
	switch i.stage {
	case live, condemned, quarantined:
		return i.server.Fault == nil
	case queued, doubtful, lost, kept, gone:
		return false
	default:
		return false
	}
}
