package openstacksim

import (
	"net/http"
	"time"
)

// Call is one request that reached the simulator, in the order of arrival.
type Call struct {
	// Number counts the calls from 1.
	Number uint64
	// Time of arrival, on the simulator's clock.
	Time time.Time
	// Operation is the kind of call.
	Operation Operation
	// Method and URL as requested.
	Method, URL string
	// Microversion as asked for; empty without the header.
	Microversion string
	// RequestID is what the answer's headers say.
	RequestID string
	// Status of the answer; 0 when there was none or there is none yet.
	Status int
}

// record enters a call. The lock is held.
func (s *Simulator) record(c *call, op Operation) int {
	s.callSeq++
	s.calls = append(s.calls, Call{
		Number:       s.callSeq,
		Time:         s.options.Now(),
		Operation:    op,
		Method:       c.request.Method,
		URL:          c.request.URL.RequestURI(),
		Microversion: askedMicroversion(c.request.Header),
		RequestID:    c.requestID,
	})
	return len(s.calls) - 1
}

// settle enters the answer of a call and logs it.
func (s *Simulator) settle(index int, result *outcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry := Call{}
	if index < len(s.calls) {
		if result != nil {
			s.calls[index].Status = result.status
		}
		entry = s.calls[index]
	}
	s.options.Logger.Info("call",
		"operation", string(entry.Operation), "method", entry.Method, "url", entry.URL,
		"status", entry.Status, "request_id", entry.RequestID, "lost", err != nil)
}

// Calls gives every call so far, oldest first.
func (s *Simulator) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Count gives the number of calls so far of an operation, or with a trailing
// * of all operations that start so.
func (s *Simulator) Count(op Operation) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if matchesOperation(op, c.Operation) {
			n++
		}
	}
	return n
}

// askedMicroversion reads the header of Nova's microversion, new or old.
func askedMicroversion(header http.Header) string {
	if asked := header.Get("X-Openstack-Nova-Api-Version"); asked != "" {
		return asked
	}
	for _, value := range header.Values("Openstack-Api-Version") {
		if version, found := cutPrefixFold(value, "compute "); found {
			return version
		}
	}
	return ""
}
