package fleet

import (
	"context"
	"net/netip"
	"time"
)

// Reader looks at servers. None of its methods changes anything.
type Reader interface {
	// List returns the servers that carry the group's tag, foreign ones included.
	// An error that wraps [ErrUnfinished] means that it was cut off and that the
	// next call goes on from there; one that wraps [ErrPutOff], that there is none
	// now for the sake of other requests.
	List(ctx context.Context) ([]Server, error)
	// Get returns one server; an error that wraps [ErrGone] is proof that it
	// does not exist.
	Get(ctx context.Context, id string) (Server, error)
	// Find returns the servers of the group that have exactly this name.
	Find(ctx context.Context, name string) ([]Server, error)
}

// Maker creates servers.
type Maker interface {
	// Create sends one creation, once, and returns as soon as the cloud has
	// accepted it. Its error wraps [ErrDoubtful] if the server may exist
	// nevertheless, and [ErrBusy], [ErrThrottled], [ErrQuota] or [ErrNoRoom] if it does not for
	// that reason. Any other error refuses what was asked for.
	Create(ctx context.Context, name string) (Created, error)
}

// Created is a server that the cloud accepted.
type Created struct {
	// ID is the cloud's identifier.
	ID string
	// Request is what the cloud's operators find the creation by.
	Request string
}

// Remover deletes servers. Each method accepts that the server is gone by
// returning an error that wraps [ErrGone], and says that the cloud could not be
// asked by one that wraps [ErrUnanswered].
type Remover interface {
	// Delete asks for the deletion of a server and does not wait for it. An
	// error that wraps [ErrLocked] asks for Unlock first.
	Delete(ctx context.Context, id string) error
	// ForceDelete asks for a deletion that ignores the state of the server, and
	// that keeps nothing of it. An error that wraps [ErrForbidden] means that
	// this user may not.
	ForceDelete(ctx context.Context, id string) error
	// Unlock lets a locked server be deleted.
	Unlock(ctx context.Context, id string) error
}

// Cloud is all that a group needs of a cloud.
type Cloud interface {
	Reader
	Maker
	Remover
}

// Phase is what the cloud says a server is doing.
type Phase int

// Phases. The zero value claims nothing.
const (
	// Unknown means that the cloud cannot tell now; what was known stays.
	Unknown Phase = iota
	// Building means on its way to Running.
	Building
	// Running means usable by jobs.
	Running
	// Deleting means that the cloud is deleting it, whoever asked.
	Deleting
	// Suspect means broken, if it stays so for a minute.
	Suspect
	// Broken means neither building nor running: to be deleted.
	Broken
	// Kept means deleted, and kept by the cloud so that its deletion can be
	// undone. It runs nothing and counts for no quota.
	Kept
	// Gone means deleted, though still listed.
	Gone
)

// Address is one address of a server.
type Address struct {
	// IP is the address.
	IP netip.Addr
	// Floating tells an address that the cloud translates to a fixed one.
	Floating bool
}

// Server is one server as the cloud reports it.
type Server struct {
	// ID is the cloud's identifier, Name the one that the group chose.
	ID, Name string
	// Owned is true when the server carries the owner mark of the group.
	Owned bool
	// Process is what the server says of the process that made it, in words that a
	// group does not read.
	Process string
	// Phase is what the server is doing; Detail says why in the cloud's words.
	Phase  Phase
	Detail string
	// Fault is why it is Broken, as far as others would meet the same: it wraps
	// [ErrQuota] or [ErrNoRoom], or is nil.
	Fault error
	// Created is when the cloud made it, by this machine's clock as far as the
	// cloud's is known.
	Created time.Time
	// Image is the ID of the image it was made of; empty for one that boots
	// from a volume.
	Image string
	// Platform is what the server was made for, in words that a group does not
	// read; empty if the server does not say.
	Platform string
	// Addresses are in the cloud's order, which means nothing.
	Addresses []Address
}

// Going reports whether the cloud is deleting the server, or has.
func (s Server) Going() bool { return s.Phase == Deleting || s.Phase == Kept || s.Phase == Gone }
