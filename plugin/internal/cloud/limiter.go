package cloud

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// DefaultCalls is how many calls a second one process makes at most, unless it
	// is told otherwise.
	DefaultCalls = 50
	// leastCalls is how many it makes at least, however often the cloud refuses
	// them for their rate.
	leastCalls = 4
	// boundPause is how often it is said that the limit is what holds calls up,
	// and boundWait from which wait on.
	boundPause = 10 * time.Minute
	boundWait  = time.Second
)

// limiter is shared by all calls: it bounds their rate, and holds all of them
// back while the cloud asks for a pause. Each time that the cloud refuses calls
// for their rate it halves its own, and grows by a little with each that passes,
// so that many processes which share a limit each find their part of it.
type limiter struct {
	most   rate.Limit
	random func() float64
	log    *slog.Logger

	bucket *rate.Limiter

	mu      sync.Mutex
	waiting int       // calls
	until   time.Time // calls are held back
	slowed  time.Time // when the rate was last halved
	told    time.Time // when it was last said that the limit holds calls up
}

func newLimiter(calls float64, random func() float64, log *slog.Logger) *limiter {
	most := rate.Limit(calls)
	return &limiter{most: most, random: random, log: log, bucket: rate.NewLimiter(most, int(2*calls)+1)}
}

// wait returns when the next call may be made.
func (l *limiter) wait(ctx context.Context) error {
	l.count(1)
	defer l.count(-1)
	for {
		l.mu.Lock()
		pause := time.Until(l.until)
		l.mu.Unlock()
		if pause <= 0 {
			break
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
	began := time.Now()
	err := l.bucket.Wait(ctx)
	if waited := time.Since(began); waited >= boundWait {
		l.tell(ctx, waited)
	}
	return err
}

func (l *limiter) count(more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting += more
}

const (
	// crowdedWait is how long a listing is put off while other calls wait because
	// the cloud refuses them for their rate, and sparingWait how far apart listings
	// are while it does.
	crowdedWait = 20 * time.Second
	sparingWait = 3 * time.Second
)

// putsOff reports whether a listing is put off, the last of which is so old.
func (l *limiter) putsOff(age time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	refuses := l.bucket.Limit() < l.most
	return refuses && (age < sparingWait || l.waiting > 0 && age < crowdedWait)
}

// tell says that the limit holds calls up, if it is this side's own.
func (l *limiter) tell(ctx context.Context, waited time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.bucket.Limit() >= l.most && now.Sub(l.told) >= boundPause {
		l.told = now
		l.log.WarnContext(ctx, "calls wait for the plugin's own limit; if the cloud bears more, raise max_calls_per_second",
			"limit", float64(l.most), "wait", waited.Round(time.Millisecond).String())
	}
}

// refused records that the cloud refused a call for its rate, and holds all calls
// back for as long as it asked for. The wait is spread, because the processes
// that share the limit were refused in the same second.
func (l *limiter) refused(pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if until := now.Add(spread(pause, l.random)); until.After(l.until) {
		l.until = until
	}
	if now.Sub(l.slowed) < time.Second {
		return // calls that were under way together are refused together
	}
	l.slowed = now
	l.bucket.SetLimitAt(now, max(l.bucket.Limit()/2, leastCalls))
	l.bucket.SetBurstAt(now, 1)
}

// passed records that the cloud did not refuse a call for its rate.
func (l *limiter) passed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	limit := l.bucket.Limit()
	if limit >= l.most {
		return
	}
	limit = min(limit*1.1, l.most)
	l.bucket.SetLimitAt(now, limit)
	if limit == l.most {
		l.bucket.SetBurstAt(now, int(2*l.most)+1)
	}
}

// spread lengthens a wait by up to a quarter.
func spread(wait time.Duration, random func() float64) time.Duration {
	return wait + time.Duration(random()*float64(wait)/4)
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
