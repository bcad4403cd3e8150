package openstacksim

import (
	"net/http"
	"strings"
	"time"
)

// Rule says which calls a [Fault] meets. All its conditions must hold; the
// zero value meets every call.
type Rule struct {
	// Operation, or with a trailing * a prefix of it; empty means any.
	Operation Operation
	// Method of HTTP; empty means any.
	Method string
	// When is asked last; it must not call the simulator. Nil means always.
	When func(*http.Request) bool

	// Skip lets that many of the calls pass first.
	Skip int
	// Every meets each Every-th of the calls after those; 0 and 1 mean all.
	Every int
	// Share meets that part of them, drawn at random; 0 means all.
	Share float64
	// Times ends the rule after it met that many calls; 0 means no end.
	Times int
	// For ends the rule so long after it was injected; 0 means no end.
	For time.Duration

	// Fault is what happens to the calls met.
	Fault Fault
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

// Delay lets the call take so long.
func Delay(d time.Duration) Fault { return Fault{Delay: d} }

// Reset closes the connection before the call has any effect.
func Reset() Fault { return Fault{Drop: DropReset} }

// Hang keeps the caller waiting until it gives up, without effect.
func Hang() Fault { return Fault{Drop: DropHang} }

// CommitThenStatus lets the call take effect and answers with an HTML page of
// that status, as a gateway in front of the service does.
func CommitThenStatus(status int) Fault {
	return Fault{Commit: true, Status: status, Body: gatewayPage(status)}
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

func gatewayPage(status int) string {
	return "<html><body><h1>" + http.StatusText(status) + "</h1>\nThe server is temporarily unable to service your request.\n</body></html>\n"
}

type activeRule struct {
	Rule
	until      time.Time
	seen, used int
	removed    bool
}

// Inject adds a rule; the function returned takes it away again. Of several
// rules that meet a call, the one injected first acts, and delays add up.
func (s *Simulator) Inject(rule Rule) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	active := &activeRule{Rule: rule}
	if rule.For > 0 {
		active.until = s.options.Now().Add(rule.For)
	}
	s.rules = append(s.rules, active)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		active.removed = true
	}
}

// FailNth injects a fault for the n-th call of the operation from now, counted from 1.
func (s *Simulator) FailNth(op Operation, n int, fault Fault) {
	s.Inject(Rule{Operation: op, Skip: n - 1, Times: 1, Fault: fault})
}

// faultFor picks the fault of a call. The lock is held.
func (s *Simulator) faultFor(op Operation, r *http.Request) Fault {
	var chosen Fault
	found := false
	for _, rule := range s.rules {
		if !s.meets(rule, op, r) {
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

// over tells whether a rule has had its time.
func (rule *activeRule) over(now time.Time) bool {
	spent := rule.Times > 0 && rule.used >= rule.Times
	late := !rule.until.IsZero() && !now.Before(rule.until)
	return rule.removed || spent || late
}

func (s *Simulator) meets(rule *activeRule, op Operation, r *http.Request) bool {
	if rule.over(s.options.Now()) || !matchesOperation(rule.Operation, op) || (rule.Method != "" && rule.Method != r.Method) {
		return false
	}
	if rule.When != nil && !rule.When(r) {
		return false
	}
	rule.seen++
	rank := rule.seen - rule.Skip
	if rank <= 0 || (rule.Every > 1 && rank%rule.Every != 0) {
		return false
	}
	if rule.Share > 0 && s.random.Float64() >= rule.Share {
		return false
	}
	rule.used++
	return true
}

func matchesOperation(pattern, op Operation) bool {
	if pattern == "" || pattern == op {
		return true
	}
	prefix, isPrefix := strings.CutSuffix(string(pattern), "*")
	return isPrefix && strings.HasPrefix(string(op), prefix)
}
