package fault

import (
	"time"
)

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
