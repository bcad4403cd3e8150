package openstacksim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Rule is one thing that goes wrong: [Rule.Fault] with calls, [Rule.Fate] with
// new servers, or [Rule.Condition] with the whole cloud. The other fields choose
// the calls or servers, and all of them must match; the zero value matches
// everything. [ParseRule] reads a rule from text.
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

	// Text is what ParseRule read the rule from.
	Text string
}

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

type activeRule struct {
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

// Inject adds a rule; the function returned takes it away again. Of several
// rules that meet a call, the one injected first acts, and delays add up. All
// that meet a server change its fate, one after the other.
func (s *Simulator) Inject(rule Rule) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ruleSeq++
	now := s.options.Now()
	active := &activeRule{Rule: rule, id: s.ruleSeq, begin: now.Add(rule.After), buckets: map[string]*bucket{}}
	if rule.For > 0 {
		active.end = active.begin.Add(rule.For)
	}
	s.rules = append(s.rules, active)
	return func() { s.Withdraw(active.id) }
}

// Injected is a rule that holds or will.
type Injected struct {
	// ID numbers the rules of a simulator from 1.
	ID int `json:"id"`
	// Text is that of [ParseRule]; empty for a rule made by a program.
	Text string `json:"fault"`
	// Met counts the calls or servers met so far.
	Met int `json:"met"`
}

// Injected returns the rules that are not over, oldest first.
func (s *Simulator) Injected() []Injected {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endRules()
	list := make([]Injected, 0, len(s.rules))
	for _, rule := range s.rules {
		list = append(list, Injected{ID: rule.id, Text: rule.Text, Met: rule.used})
	}
	return list
}

// Withdraw takes a rule away and reports whether it was there.
func (s *Simulator) Withdraw(id int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.rules)
	s.rules = slices.DeleteFunc(s.rules, func(rule *activeRule) bool { return rule.id == id })
	return len(s.rules) < before
}

// FailNth injects a fault for the n-th call of the operation from now, counted from 1.
func (s *Simulator) FailNth(op Operation, n int, fault Fault) {
	s.Inject(Rule{Operation: op, Skip: n - 1, Times: 1, Fault: fault})
}

// endRules forgets the rules that are over. The lock is held.
func (s *Simulator) endRules() {
	now := s.options.Now()
	s.rules = slices.DeleteFunc(s.rules, func(rule *activeRule) bool {
		return rule.Times > 0 && rule.used >= rule.Times || !rule.end.IsZero() && !now.Before(rule.end)
	})
}

// faultFor picks the fault of a call. The lock is held.
func (s *Simulator) faultFor(op Operation, r *http.Request) Fault {
	s.endRules()
	var chosen Fault
	found := false
	for _, rule := range s.rules {
		if !s.meetsCall(rule, op, r) {
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

func (s *Simulator) meetsCall(rule *activeRule, op Operation, r *http.Request) bool {
	project := s.projectOf(r)
	switch {
	case rule.Fate != nil, rule.Condition != nil,
		!matchesOperation(rule.Operation, op),
		rule.Method != "" && rule.Method != r.Method,
		rule.Project != "" && rule.Project != project,
		rule.When != nil && !rule.When(r):
		return false
	}
	return s.counts(rule, project)
}

// projectOf is the name of the project of a call's token; empty without one.
func (s *Simulator) projectOf(r *http.Request) string {
	granted := s.tokens[r.Header.Get("X-Auth-Token")]
	if granted == nil || granted.project == nil {
		return ""
	}
	return granted.project.Name
}

// meetsServer tells whether a rule decides the fate of a server: at its entry,
// where the host is not known yet, or when it has one.
func (s *Simulator) meetsServer(rule *activeRule, info ServerInfo) bool {
	switch {
	case rule.Fate == nil,
		rule.Host != info.Host, // a rule without a host is asked at the entry only
		rule.Project != "" && rule.Project != info.Project,
		rule.Server != nil && !rule.Server(info):
		return false
	}
	return s.counts(rule, info.Project)
}

// counts applies a rule's numbers to one more call or server that it matches.
func (s *Simulator) counts(rule *activeRule, project string) bool {
	if s.options.Now().Before(rule.begin) {
		return false
	}
	rule.seen++
	rank := rule.seen - rule.Skip
	switch {
	case rank <= 0,
		rule.Times > 0 && rule.used >= rule.Times,
		rule.Every > 1 && rank%rule.Every != 0,
		rule.Share > 0 && s.random.Float64() >= rule.Share,
		rule.PerSecond > 0 && s.passes(rule, project):
		return false
	}
	rule.used++
	return true
}

// passes takes a call from the bucket of its project, if there is one left.
func (s *Simulator) passes(rule *activeRule, project string) bool {
	now, size := s.options.Now(), max(float64(rule.Burst), 1)
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

func matchesOperation(pattern, op Operation) bool {
	if pattern == "" || pattern == op {
		return true
	}
	prefix, isPrefix := strings.CutSuffix(string(pattern), "*")
	return isPrefix && strings.HasPrefix(string(op), prefix)
}
