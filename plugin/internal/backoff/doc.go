// Package backoff decides when the next creation or deletion may be sent.
//
// A [Gate] answers three questions about creations, each from its own signals:
// how many requests the API bears at a time ([Flow]), how many servers the cloud
// has room for ([Ceiling]), and whether servers come up at all ([Breaker]).
// Deletions need a [Flow] only. docs/explanation/scaling.md explains the model.
//
// The package holds no clock and starts no timer: callers pass the time in. No
// type is safe for concurrent use.
package backoff

import "time"

// jitter spreads a wait between three and five quarters of it, so that the
// processes that one event made wait do not come back in one moment.
func jitter(wait time.Duration, random func() float64) time.Duration {
	return time.Duration(float64(wait) * (0.75 + random()/2))
}
