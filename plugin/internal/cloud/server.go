package cloud

import (
	"net/netip"
	"time"
)

// Server is what a group needs to know of a Nova server.
type Server struct {
	// ID and Name are Nova's.
	ID, Name string
	// Status is Nova's, for example ACTIVE. TaskState is empty when no task
	// is under way; it alone tells that an ACTIVE server is being deleted.
	Status, TaskState string
	// Created is by the cloud's clock, with a resolution of a second.
	Created time.Time
	// Image is empty for a server that boots from a volume.
	Image string
	// Locked tells that a deletion will be refused.
	Locked bool
	// Metadata is what the server was created with.
	Metadata map[string]string
	// Addresses are grouped by network, in Nova's order within each.
	Addresses []Address
	// Fault is why the server is in ERROR; empty otherwise.
	Fault string
}

// Address is one address of a server.
type Address struct {
	// Network is the name of the network.
	Network string
	// IP is the address.
	IP netip.Addr
	// Floating is true for a floating IP.
	Floating bool
}
