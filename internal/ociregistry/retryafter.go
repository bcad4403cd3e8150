package ociregistry

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxReset is the latest reset of a limit that is believed.
const maxReset = 24 * time.Hour

// askedToWait says how long an answer asks its client to wait: by Retry-After,
// or where a client was limited and that is missing, by the time at which the
// limit is reset. What an answer that is no refusal says of limits is not
// waited for: registries count pulls, and not every request is one.
func askedToWait(resp *http.Response, now time.Time) (time.Duration, bool) {
	if after, ok := retryAfter(resp.Header, now); ok {
		return after, true
	}
	if resp.StatusCode != http.StatusTooManyRequests {
		return 0, false
	}
	for _, name := range []string{"RateLimit-Reset", "X-RateLimit-Reset"} {
		if after, ok := seconds(resp.Header.Get(name), now); ok && after <= maxReset {
			return after, true
		}
	}
	return 0, false
}

// retryAfter reads the header in seconds or as a date, RFC 9110 section 10.2.3.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	v := h.Get("Retry-After")
	if after, ok := seconds(v, now); ok {
		return after, true
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(t.Sub(now), 0), true
	}
	return 0, false
}

// sinceEpoch is the number from which seconds are those since 1970: services
// differ in whether they count from now (draft-ietf-httpapi-ratelimit-headers-06)
// or from then (GitLab, GitHub, Docker).
const sinceEpoch = 1_000_000_000

// seconds reads a number of seconds, with parameters that are passed over.
func seconds(value string, now time.Time) (time.Duration, bool) {
	value, _, _ = strings.Cut(value, ";")
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	switch {
	case err != nil || n < 0 || n > 1<<40:
		return 0, false
	case n >= sinceEpoch:
		return max(time.Unix(n, 0).Sub(now), 0), true
	case n > int64(maxReset/time.Second)*365:
		return 0, false
	}
	return time.Duration(n) * time.Second, true
}

// allowance says what a registry allows its clients, as Docker Hub writes it in
// RateLimit-Limit: "100;w=21600" are 100 pulls in six hours. It is "" where the
// registry does not say.
func allowance(h http.Header) string {
	limit, parameters, _ := strings.Cut(h.Get("RateLimit-Limit"), ";")
	window, ok := strings.CutPrefix(strings.TrimSpace(parameters), "w=")
	count, err := strconv.ParseUint(strings.TrimSpace(limit), 10, 32)
	span, windowErr := strconv.ParseUint(window, 10, 31)
	if err != nil || windowErr != nil || !ok {
		return ""
	}
	return fmt.Sprintf("it allows %d in %s", count, time.Duration(span)*time.Second)
}
