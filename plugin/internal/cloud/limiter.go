package cloud

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// callRate and callBurst bound the calls of one plugin process per second.
	callRate  = 50
	callBurst = 100
)

// limiter is shared by all calls: it bounds their rate, and holds all of them
// back while the cloud asks for a pause.
type limiter struct {
	bucket *rate.Limiter

	mu    sync.Mutex
	until time.Time
}

func newLimiter() *limiter {
	return &limiter{bucket: rate.NewLimiter(callRate, callBurst)}
}

// wait returns when the next call may be made.
func (l *limiter) wait(ctx context.Context) error {
	for {
		l.mu.Lock()
		pause := time.Until(l.until)
		l.mu.Unlock()
		if pause <= 0 {
			return l.bucket.Wait(ctx)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// hold makes every call wait, because one was told to.
func (l *limiter) hold(pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := time.Now().Add(pause); until.After(l.until) {
		l.until = until
	}
}

// sleep waits for a while, or for the end of ctx.
func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
