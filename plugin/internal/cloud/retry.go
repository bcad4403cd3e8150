package cloud

import (
	"net/http"
	"strconv"
	"time"
)

// statusTokenRate is what some clouds answer instead of 429.
const statusTokenRate = 498

const (
	// retries is how often a call is tried again.
	retries = 3
	// firstRetry is the pause before the first retry; it doubles.
	firstRetry = time.Second
	// longestWait bounds what a Retry-After header may ask for.
	longestWait = 30 * time.Second
)

// retryDelay tells whether to make a call again, and after which wait at least. A call that changes
// something is repeated only when the service surely did not take it on.
func retryDelay(failed *Error, header http.Header, changes bool, attempt int, now time.Time) (time.Duration, bool) {
	if attempt >= retries {
		return 0, false
	}
	pause := firstRetry << attempt
	asked, hasAsked := retryAfter(header, now)
	if hasAsked {
		pause = min(max(asked, 0), longestWait)
	}
	switch failed.Status {
	case http.StatusTooManyRequests, statusTokenRate:
		return pause, true
	case http.StatusRequestEntityTooLarge:
		return pause, hasAsked
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return pause, !changes
	case 0:
		return pause, !changes && failed.Kind == ErrTransient && !mistrusted(failed.Err) //nolint:errorlint // a field, compared with its own sentinel
	default:
		return 0, false
	}
}

// retryAfter reads the header in either of its forms, seconds or a date
// (RFC 9110, section 10.2.3).
func retryAfter(header http.Header, now time.Time) (time.Duration, bool) {
	value := header.Get("Retry-After")
	if value == "" {
		return 0, false
	}
	if seconds, err := strconv.Atoi(value); err == nil {
		// Bounded, for nothing may overflow.
		return time.Duration(min(max(seconds, 0), 24*60*60)) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		if date, err := http.ParseTime(header.Get("Date")); err == nil {
			now = date // both by the cloud's clock
		}
		return at.Sub(now), true
	}
	return 0, false
}
