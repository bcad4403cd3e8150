package fault

import (
	"fmt"
	"net/http"
	"time"
)

// Drop says what becomes of the connection of a call.
type Drop int

// How the answer gets lost.
const (
	// DropNothing delivers the answer.
	DropNothing Drop = iota
	// DropReset closes the connection without an answer.
	DropReset
	// DropTruncate delivers the status, the headers and half of the body.
	DropTruncate
	// DropHang answers nothing until the caller gives up.
	DropHang
	// DropRefuse refuses the connection. Over a socket, which is accepted by
	// then, it is DropReset.
	DropRefuse
)

// Fault is what goes wrong with a call.
type Fault struct {
	// Delay comes before anything else.
	Delay time.Duration
	// Commit lets the call take effect before Status or Drop hides its answer.
	// A fault with neither only delays.
	Commit bool
	// Status answers with this status in place of the true answer.
	Status int
	// Message goes into the service's own error wrapper.
	Message string
	// Body replaces the whole body, with ContentType (text/html unless set), as proxies do.
	Body, ContentType string
	// RetryAfter is the header of that name: seconds, or a date of HTTP.
	RetryAfter string
	// Drop loses the answer.
	Drop Drop
	// DropMarker first destroys the server that the call's marker names, and
	// purges it: Nova goes on after a marker that is only deleted.
	DropMarker bool
}

// Refuse answers with a status in the service's own wrapper, without effect.
func Refuse(status int, message string) Fault { return Fault{Status: status, Message: message} }

// Gateway answers with the page of a balancer that has no service behind it,
// without effect: 502, 503 or 504.
func Gateway(status int) Fault { return Fault{Status: status, Body: gatewayPage(status)} }

// Refused refuses the connection.
func Refused() Fault { return Fault{Drop: DropRefuse} }

// Delay lets the call take so long.
func Delay(d time.Duration) Fault { return Fault{Delay: d} }

// Reset closes the connection before the call has any effect.
func Reset() Fault { return Fault{Drop: DropReset} }

// Hang keeps the caller waiting until it gives up, without effect.
func Hang() Fault { return Fault{Drop: DropHang} }

// CommitThenStatus lets the call take effect and answers with an HTML page of
// that status, as a gateway in front of the service does. The page says nothing
// about why: one that has no server to pass the call on to says so.
func CommitThenStatus(status int) Fault {
	page := fmt.Sprintf("<html><body><h1>%d %s</h1>\n</body></html>\n", status, http.StatusText(status))
	return Fault{Commit: true, Status: status, Body: page}
}

// CommitThenReset lets the call take effect and closes the connection.
func CommitThenReset() Fault { return Fault{Commit: true, Drop: DropReset} }

// CommitThenTruncate lets the call take effect and cuts its answer in half.
func CommitThenTruncate() Fault { return Fault{Commit: true, Drop: DropTruncate} }

// CommitThenHang lets the call take effect and never answers.
func CommitThenHang() Fault { return Fault{Commit: true, Drop: DropHang} }

// RateLimited answers 429, with a Retry-After unless it is empty.
func RateLimited(retryAfter string) Fault {
	return Fault{Status: http.StatusTooManyRequests, Message: "Too many requests", RetryAfter: retryAfter}
}

// gatewayPage is what HAProxy answers by itself.
func gatewayPage(status int) string {
	reason := "The server returned an invalid or incomplete response."
	switch status {
	case http.StatusServiceUnavailable:
		reason = "No server is available to handle this request."
	case http.StatusGatewayTimeout:
		reason = "The server didn't respond in time."
	}
	return fmt.Sprintf("<html><body><h1>%d %s</h1>\n%s\n</body></html>\n", status, http.StatusText(status), reason)
}

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

// Condition is what the whole cloud is like. The zero value is a good day.
type Condition struct {
	// ListingLag is how much later than a GET listings show new servers, and
	// stop showing deleted ones.
	ListingLag time.Duration
	// CellDown makes the cell of all servers unreachable: listings by filter
	// leave them out, and their calls fail.
	CellDown bool
	// SoftDelete is how long a deleted server is kept, unless it is
	// force-deleted: Nova's reclaim_instance_interval. 0 deletes at once.
	SoftDelete time.Duration
	// Clock is how far the cloud's clock is ahead: that of the Date header and
	// of the times that Nova and Keystone write.
	Clock time.Duration
	// LegacyEndpoint makes the catalogue name Nova's endpoint for clients of
	// before microversions, /v2/PROJECT, which ignores the header.
	LegacyEndpoint bool

	quotas []quotaChange
}

type quotaChange struct {
	project string // by name; empty means every project
	change  func(*Quota)
}

// Quota returns what is left of the quota of a project, by its name.
func (c *Condition) Quota(project string, quota Quota) Quota {
	for _, q := range c.quotas {
		if q.project == "" || q.project == project {
			q.change(&quota)
		}
	}
	return quota
}

// Unlimited as a quota means no limit.
const Unlimited = -1

// Quota is what a project may have at once. RAM is in MiB, Gigabytes in GiB.
type Quota struct {
	Instances, Cores, RAM            int
	Ports, FloatingIPs               int
	Volumes, Gigabytes               int
	KeyPairs                         int
	ServerGroups, ServerGroupMembers int
	MetadataItems                    int
}
