package fault

import (
	"time"
)

// Texts of faults as members see them.
const (
	// NoValidHost is what the scheduler says, with its trailing space.
	NoValidHost = "No valid host was found. "
	// RetriesExceeded starts what the conductor says when every host refused; the ID of the server follows.
	RetriesExceeded = "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance "
)

// Always as a number of times means without end.
const Always = -1

// Fate is what becomes of a server. The zero value is a server that builds,
// runs and is deleted in the times of the cloud; a negative duration means at once.
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

// ServerInfo is what the simulator knows of a server.
type ServerInfo struct {
	ID, Name, Project string // the project by its name
	// Status as the API shows it, and the task state.
	Status, TaskState string
	Flavor            string // by name
	Image             string // by ID, empty when booted from a volume
	KeyName, UserData string
	Zone, Host, Group string // the group by its ID
	ConfigDrive       bool
	Locked            bool
	Tags              []string
	Metadata          map[string]string
	// Addresses by network, in the order of the API.
	Addresses map[string][]string
	Fault     string
	Volumes   []string
	// Created is when, on the simulator's clock.
	Created time.Time
}

// Consume takes one from a number of times and reports whether there was one.
func Consume(times *int) bool {
	switch {
	case *times == 0:
		return false
	case *times > 0:
		*times--
	}
	return true
}
