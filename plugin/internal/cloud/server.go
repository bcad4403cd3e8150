package cloud

import (
	"net/netip"
	"time"
)

// Server is what a group needs to know of a Nova server.
type Server struct {
	// ID and Name are Nova's. Name, Status, TaskState and Fault are [Printable].
	ID, Name string
	// Status is Nova's, for example ACTIVE. TaskState is empty when no task
	// is under way; it alone tells that an ACTIVE server is being deleted.
	Status, TaskState string
	// Created is by this machine's clock, as far as the cloud's is known, with a
	// resolution of a second.
	Created time.Time
	// Image is empty for a server that boots from a volume.
	Image string
	// Locked tells that a deletion will be refused.
	Locked bool
	// Tags are Nova's.
	Tags []string
	// Metadata is what the server was created with.
	Metadata map[string]string
	// Addresses are grouped by network, in Nova's order within each.
	Addresses []Address
	// Fault is why the server is in ERROR; empty otherwise.
	Fault string
}

// Address is one address of a server.
type Address struct {
	// Network is the name of the network, which is not unique, and MAC the address
	// of the port, in lower case.
	Network, MAC string
	// IP is the address.
	IP netip.Addr
	// Floating is true for a floating IP.
	Floating bool
}
