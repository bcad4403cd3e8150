package cloud

import (
	"net/http"
	"strings"
)

// turnedAway reports whether an error answer was sent in place of any work, by
// something that looked at the request's headers at most. Only answers that are
// known to be so count: a proxy also answers 502, 503 and 504 when the service had
// the request and its answer was lost.
func turnedAway(status int, wrapper, text string) bool {
	switch status {
	case http.StatusTooManyRequests, statusTokenRate, http.StatusRequestEntityTooLarge:
		return true // limits of the rate (RFC 6585; Nova before Mitaka: 413)
	case http.StatusRequestTimeout:
		// HAProxy, which waited for the rest of the request.
		return strings.Contains(text, "didn't send a complete request in time")
	case http.StatusServiceUnavailable:
		return wrapper == unavailable || containsAny(text, unavailableTexts())
	default:
		return false
	}
}

// unavailable is the name that Nova's API gives a 503 (nova/api/openstack/wsgi.py,
// Fault). It raises none while or after it creates a server.
const unavailable = "serviceUnavailable"

// unavailableTexts, in lower case, are in pages of 503 that are sent when the
// request was not passed on.
func unavailableTexts() []string {
	return []string{
		// keystonemiddleware, in front of Nova, which cannot check the token.
		"the keystone service is temporarily unavailable",
		// HAProxy without a server that takes requests, or after its own queue.
		"no server is available to handle this request",
		// Apache httpd: mod_proxy without a connection to the backend, mod_wsgi with
		// a full queue. An answer that is lost later is a 502 or a 504.
		"due to maintenance downtime or capacity problems",
		// nginx: limit_req and limit_conn. Without a backend it answers 502, as it
		// does when it lost the answer of one.
		"503 service temporarily unavailable nginx",
		// Envoy, without a backend or without a connection to it.
		"no healthy upstream",
		"reset reason: connection failure", "reset reason: remote connection failure",
		// Traefik.
		"no available server",
	}
}
