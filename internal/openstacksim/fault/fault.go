package fault

import (
	"fmt"
	"net/http"
	"time"
)

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
