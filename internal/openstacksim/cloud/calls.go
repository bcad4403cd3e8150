package cloud

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// Record is one request that reached the simulator, in the order of arrival.
type Record struct {
	// Number counts the calls from 1.
	Number uint64
	// Time of arrival, on the simulator's clock.
	Time time.Time
	// Operation is the kind of call.
	Operation fault.Operation
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
func (c *Cloud) record(call *Call, op fault.Operation) int {
	c.calls = append(c.calls, Record{
		Number: uint64(len(c.calls) + 1), Time: c.clock(), Operation: op,
		Method: call.Request.Method, URL: call.Request.URL.RequestURI(),
		Microversion: AskedMicroversion(call.Request.Header), RequestID: call.RequestID,
	})
	return len(c.calls) - 1
}

// settle enters the answer of a call and logs it.
func (c *Cloud) settle(index int, result *outcome, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := &c.calls[index]
	if result != nil {
		entry.Status = result.status
	}
	c.Logger.Info("call",
		"operation", string(entry.Operation), "method", entry.Method, "url", entry.URL,
		"status", entry.Status, "request_id", entry.RequestID, "lost", err != nil)
}

// Calls gives every call so far, oldest first.
func (c *Cloud) Calls() []Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// Count gives the number of calls so far of an operation, or with a trailing
// * of all operations that start so.
func (c *Cloud) Count(op fault.Operation) int {
	n := 0
	for _, call := range c.Calls() {
		if op.Matches(call.Operation) {
			n++
		}
	}
	return n
}

// AskedMicroversion reads the header of Nova's microversion, new or old.
func AskedMicroversion(header http.Header) string {
	if asked := header.Get("X-Openstack-Nova-Api-Version"); asked != "" {
		return asked
	}
	for _, value := range header.Values("Openstack-Api-Version") {
		if service, version, _ := strings.Cut(value, " "); strings.EqualFold(service, "compute") {
			return strings.TrimSpace(version)
		}
	}
	return ""
}
