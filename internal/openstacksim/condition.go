package openstacksim

import (
	"strings"
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
	project string
	change  func(*Quota)
}

// ChangeQuota changes the quota of a project, by its name; empty means every
// project's.
func (c *Condition) ChangeQuota(project string, change func(*Quota)) {
	c.quotas = append(c.quotas, quotaChange{project, change})
}

// condition is what the methods have set and the rules that hold make of it.
// The lock is held.
func (s *Simulator) condition() Condition {
	c := s.set
	s.endRules()
	now := s.options.Now()
	for _, rule := range s.rules {
		if rule.Condition != nil && !now.Before(rule.begin) {
			rule.used = 1
			rule.Condition(&c)
		}
	}
	return c
}

// quotaOf is the quota of a project in the present condition.
func (s *Simulator) quotaOf(project *Project) Quota {
	quota := project.Quota
	for _, q := range s.weather.quotas {
		if q.project == "" || q.project == project.Name {
			q.change(&quota)
		}
	}
	return quota
}

// stamp writes a time by the cloud's clock.
func (s *Simulator) stamp(t time.Time, layout string) string {
	return t.Add(s.weather.Clock).UTC().Format(layout)
}

// legacyPath rewrites the path of a call to the legacy endpoint of Nova, which
// answers as 2.1 does without the header.
func legacyPath(path string) (string, bool) {
	rest, found := strings.CutPrefix(path, "/compute/v2/")
	if !found {
		return path, false
	}
	_, rest, _ = strings.Cut(rest, "/") // the project
	return strings.TrimSuffix("/compute/v2.1/"+rest, "/"), true
}
