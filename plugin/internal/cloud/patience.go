package cloud

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// attemptTimeout bounds an attempt of a call, whatever was learned.
	attemptTimeout = time.Minute
	// leastWait is when an answer is overdue at the earliest. One that changes
	// something gets a little more, and more if none came yet: to ask again is no
	// remedy.
	leastWait   = 10 * time.Second
	leastChange = 15 * time.Second
	firstChange = 40 * time.Second
	// slack is how many times slower than the slowest of late an answer may be.
	slack = 5
)

// patience knows when an answer is overdue. Where answers take a second, one that
// takes ten is most likely lost, and waiting a minute for it holds up a job;
// where pages take ten seconds it is not.
type patience struct {
	mu      sync.Mutex
	slowest map[string]time.Duration // by method, of late
}

// overdue is when an answer is.
func (p *patience) overdue(of call) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	slowest, known := p.slowest[of.method]
	least := leastWait
	switch {
	case of.changes && !known:
		least = firstChange
	case of.changes:
		least = leastChange
	}
	return min(max(slack*slowest, least), attemptTimeout)
}

// answered records how long an answer took.
func (p *patience) answered(of call, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slowest == nil {
		p.slowest = map[string]time.Duration{}
	}
	p.slowest[of.method] = max(took, p.slowest[of.method]*15/16)
}

// send sends a request and returns the answer, whose body is still to be read.
type send func(ctx context.Context) (*http.Response, error)

// sending is a request under way, or its answer.
type sending struct {
	answer *http.Response
	err    error
	cause  string // of a panic
	cancel context.CancelFunc
}

// hedge sends a request and, each time that its answer is overdue, again beside
// it, in place of the time before. The first answer counts. So a slow cloud is
// waited for, and one that was silent is noticed as soon as it answers again.
// Without again, nothing is sent twice. The answer can be read until cancel is
// called.
func hedge(ctx context.Context, overdue time.Duration, first, again send) (answer *http.Response, cancel context.CancelFunc, err error) {
	results := make(chan *sending, 2+int(attemptTimeout/overdue))
	running := map[*sending]bool{}
	begin := func(request send) *sending {
		s := &sending{}
		var own context.Context
		own, s.cancel = context.WithCancel(ctx)
		running[s] = true
		go func() {
			defer func() { results <- s }()
			defer func() {
				if cause := recover(); cause != nil {
					s.cause = fmt.Sprintf("%v\n%s", cause, debug.Stack())
				}
			}()
			s.answer, s.err = request(own) //nolint:bodyclose // whoever reads the answer closes it; the others end with their contexts
		}()
		return s
	}
	begin(first)
	var young *sending
	var late <-chan time.Time
	if again != nil {
		ticker := time.NewTicker(overdue)
		defer ticker.Stop()
		late = ticker.C
	}
	for {
		select {
		case s := <-results:
			delete(running, s)
			if s == young {
				young = nil
			}
			if s.cause != "" {
				panic(s.cause) // here, where it is recovered from
			}
			if s.answer == nil && headerOf(nil, s.err) == nil && len(running) > 0 && ctx.Err() == nil {
				s.cancel()
				continue // another may still be answered
			}
			abandon(running, results)
			return s.answer, s.cancel, s.err
		case <-late:
			if young != nil {
				young.cancel()
			}
			young = begin(again)
		}
	}
}

// abandon ends requests whose answers do not count any more.
func abandon(running map[*sending]bool, results <-chan *sending) {
	for s := range running {
		s.cancel()
	}
	go func() {
		for range len(running) {
			if s := <-results; s.answer != nil {
				_ = s.answer.Body.Close()
			}
		}
	}()
}
