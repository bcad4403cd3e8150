// Package fault is what can go wrong with the simulated cloud: rules for calls,
// for servers and for the whole cloud, and the text in which users write them.
//
// It only decides. The services carry out what a [Fault], a [Fate] or a
// [Condition] says, and it knows none of them.
package fault

import (
	"net/http"
	"slices"
	"time"
)

// Rule is one thing that goes wrong: [Rule.Fault] with calls, [Rule.Fate] with
// new servers, or [Rule.Condition] with the whole cloud. The other fields choose
// the calls or servers, and all of them must match; the zero value matches
// everything. [Parse] reads a rule from text.
type Rule struct {
	// Operation, or with a trailing * a prefix of it; empty means any.
	Operation Operation
	// Method of HTTP; empty means any.
	Method string
	// When is asked last about a call; it must not call the simulator. Nil means always.
	When func(*http.Request) bool
	// Project is the name of a project: of the token of a call, or of a server. Empty means any.
	Project string
	// Server is asked about a new server; it must not call the simulator. Nil means any.
	Server func(ServerInfo) bool
	// Host is where the scheduler put a new server; empty means anywhere.
	Host string

	// Skip lets that many of the calls or servers pass first.
	Skip int
	// Every meets each Every-th of those after that; 0 and 1 mean all.
	Every int
	// Share meets that part of them, drawn at random; 0 means all.
	Share float64
	// Times ends the rule after it met that many; 0 means no end.
	Times int
	// After is how long after its injection the rule begins, For how long it then holds; 0 means no end.
	After, For time.Duration
	// PerSecond lets that many calls a second of each project pass, and Burst
	// at once, and meets the others; 0 meets them all.
	PerSecond float64
	Burst     int

	// Fault is what happens to the calls met.
	Fault Fault
	// Fate changes what becomes of the servers met; it must not call the simulator.
	Fate func(*Fate, ServerInfo)
	// Condition changes what the cloud is like while the rule holds.
	Condition func(*Condition)

	// Text is what [Parse] read the rule from.
	Text string
}

// Rules are those of one cloud, in the order of their injection. The caller
// keeps two of its methods from running at once.
type Rules struct {
	now   func() time.Time
	share func() float64 // a random number in [0, 1)
	list  []*active
	last  int
}

// NewRules makes an empty set on a clock, with a source of random numbers from 0 to 1.
func NewRules(now func() time.Time, share func() float64) Rules {
	return Rules{now: now, share: share}
}

type active struct {
	Rule
	id         int
	begin, end time.Time // no end: zero
	seen, used int
	buckets    map[string]*bucket // by project
}

// bucket holds the calls that may pass at once.
type bucket struct {
	tokens float64
	filled time.Time
}

// Add adds a rule and returns its ID.
func (s *Rules) Add(rule Rule) int {
	s.last++
	added := &active{Rule: rule, id: s.last, begin: s.now().Add(rule.After), buckets: map[string]*bucket{}}
	if rule.For > 0 {
		added.end = added.begin.Add(rule.For)
	}
	s.list = append(s.list, added)
	return added.id
}

// Injected is a rule that holds or will.
type Injected struct {
	// ID numbers the rules of a cloud from 1.
	ID int `json:"id"`
	// Text is that of [Parse]; empty for a rule made by a program.
	Text string `json:"fault"`
	// Met counts the calls or servers met so far.
	Met int `json:"met"`
}

// List returns the rules that are not over, oldest first.
func (s *Rules) List() []Injected {
	s.expire()
	list := make([]Injected, 0, len(s.list))
	for _, rule := range s.list {
		list = append(list, Injected{ID: rule.id, Text: rule.Text, Met: rule.used})
	}
	return list
}

// Remove takes a rule away and reports whether it was there.
func (s *Rules) Remove(id int) bool {
	before := len(s.list)
	s.list = slices.DeleteFunc(s.list, func(rule *active) bool { return rule.id == id })
	return len(s.list) < before
}

// expire forgets the rules that are over.
func (s *Rules) expire() {
	now := s.now()
	s.list = slices.DeleteFunc(s.list, func(rule *active) bool {
		return rule.Times > 0 && rule.used >= rule.Times || !rule.end.IsZero() && !now.Before(rule.end)
	})
}

// Condition returns a condition as the rules that hold change it.
func (s *Rules) Condition(c Condition) Condition {
	s.expire()
	now := s.now()
	for _, rule := range s.list {
		if rule.Condition != nil && !now.Before(rule.begin) {
			rule.used = 1
			rule.Condition(&c)
		}
	}
	return c
}

// Call chooses the fault of a call with a token of a project, which is empty
// without one. Of several rules the oldest acts, and delays add up.
func (s *Rules) Call(op Operation, r *http.Request, project string) Fault {
	s.expire()
	var chosen Fault
	found := false
	for _, rule := range s.list {
		if !s.meetsCall(rule, op, r, project) {
			continue
		}
		if rule.Fault.Status == 0 && rule.Fault.Drop == DropNothing && !rule.Fault.DropMarker {
			chosen.Delay += rule.Fault.Delay
			continue
		}
		if !found {
			found = true
			delay := chosen.Delay
			chosen = rule.Fault
			chosen.Delay += delay
		}
	}
	return chosen
}

func (s *Rules) meetsCall(rule *active, op Operation, r *http.Request, project string) bool {
	switch {
	case rule.Fate != nil, rule.Condition != nil,
		!rule.Operation.Matches(op),
		rule.Method != "" && rule.Method != r.Method,
		rule.Project != "" && rule.Project != project,
		rule.When != nil && !rule.When(r):
		return false
	}
	return s.counts(rule, project)
}

// Decide lets the rules change the fate of a server: those with a host once it
// has one, the others before.
func (s *Rules) Decide(fate *Fate, info ServerInfo) {
	s.expire()
	for _, rule := range s.list {
		switch {
		case rule.Fate == nil,
			rule.Host != info.Host,
			rule.Project != "" && rule.Project != info.Project,
			rule.Server != nil && !rule.Server(info),
			!s.counts(rule, info.Project):
		default:
			rule.Fate(fate, info)
		}
	}
}

// counts applies a rule's numbers to one more call or server that it matches.
func (s *Rules) counts(rule *active, project string) bool {
	if s.now().Before(rule.begin) {
		return false
	}
	rule.seen++
	rank := rule.seen - rule.Skip
	switch {
	case rank <= 0,
		rule.Times > 0 && rule.used >= rule.Times,
		rule.Every > 1 && rank%rule.Every != 0,
		rule.Share > 0 && s.share() >= rule.Share,
		rule.PerSecond > 0 && s.passes(rule, project):
		return false
	}
	rule.used++
	return true
}

// passes takes a call from the bucket of its project, if there is one left.
func (s *Rules) passes(rule *active, project string) bool {
	now, size := s.now(), max(float64(rule.Burst), 1)
	b := rule.buckets[project]
	if b == nil {
		b = &bucket{tokens: size, filled: now}
		rule.buckets[project] = b
	}
	b.tokens = min(size, b.tokens+now.Sub(b.filled).Seconds()*rule.PerSecond)
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
