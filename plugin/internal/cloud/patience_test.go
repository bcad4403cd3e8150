package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOverdueFollowsWhatAnswersTake(t *testing.T) {
	t.Parallel()
	read, change := call{method: http.MethodGet}, call{method: http.MethodPost, changes: true}
	var p patience
	got := []time.Duration{p.overdue(read), p.overdue(change)}
	for _, took := range []time.Duration{time.Second, 4 * time.Second, time.Hour} {
		p.answered(read, took)
		p.answered(change, took)
		got = append(got, p.overdue(read), p.overdue(change))
	}
	s := time.Second
	if diff := cmp.Diff([]time.Duration{10 * s, 40 * s, 10 * s, 15 * s, 20 * s, 20 * s, 60 * s, 60 * s}, got); diff != "" {
		t.Errorf("overdue after nothing, 1 s, 4 s and an hour (-want +got):\n%s", diff)
	}
	for range 200 {
		p.answered(read, 0)
	}
	if got := p.overdue(read); got != leastWait {
		t.Errorf("after many fast answers: got %v, want %v", got, leastWait)
	}
}

// body counts how many answers were not closed.
type body struct {
	io.Reader
	open *atomic.Int32
}

func (b body) Close() error {
	b.open.Add(-1)
	return nil
}

func TestHedge(t *testing.T) {
	t.Parallel()
	const overdue = 10 * time.Second
	broken := errors.New("connection reset")
	for name, row := range map[string]struct {
		answers func(n int32, since time.Duration) (after time.Duration, err error) // of the n-th request
		took    time.Duration
		sent    int32
		err     error
	}{
		"a fast answer": {func(int32, time.Duration) (time.Duration, error) { return time.Second, nil }, time.Second, 1, nil},
		"a slow cloud":  {func(int32, time.Duration) (time.Duration, error) { return 35 * time.Second, nil }, 35 * time.Second, 4, nil},
		"one that answers again": {func(_ int32, since time.Duration) (time.Duration, error) {
			return silentUntil(since, 42*time.Second), nil
		}, 51 * time.Second, 6, nil},
		"a failure before overdue": {func(int32, time.Duration) (time.Duration, error) { return time.Second, broken }, time.Second, 1, broken},
		"a failure beside another": {func(n int32, _ time.Duration) (time.Duration, error) {
			if n == 2 {
				return time.Second, broken
			}
			return 15 * time.Second, nil
		}, 15 * time.Second, 2, nil},
		"no answer at all": {func(int32, time.Duration) (time.Duration, error) { return time.Hour, nil }, 55 * time.Second, 6, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var sent, open atomic.Int32
				began := time.Now()
				request := func(ctx context.Context) (*http.Response, error) {
					after, err := row.answers(sent.Add(1), time.Since(began))
					if sleep(ctx, after) != nil {
						return nil, ctx.Err()
					}
					if err != nil {
						return nil, err
					}
					open.Add(1)
					return &http.Response{StatusCode: http.StatusOK, Body: body{strings.NewReader(""), &open}}, nil
				}
				ctx, cancel := context.WithTimeout(t.Context(), 55*time.Second)
				defer cancel()
				answer, end, err := hedge(ctx, overdue, request, request)
				if took := time.Since(began); took != row.took || sent.Load() != row.sent || !errors.Is(err, row.err) {
					t.Errorf("%d requests in %v, %v; want %d in %v, %v", sent.Load(), took, err, row.sent, row.took, row.err)
				}
				if err == nil {
					_ = answer.Body.Close()
				}
				end()
				synctest.Wait()
				if got := open.Load(); got != 0 {
					t.Errorf("answers that were not closed: %d", got)
				}
			})
		})
	}
}

// silentUntil is how long a request that is sent at a time waits, if a cloud
// answers no request that was sent before another.
func silentUntil(sent, back time.Duration) time.Duration {
	if sent < back {
		return time.Hour
	}
	return time.Second
}

// TestWhatChangesSomethingIsSentOnce, also when its answer is overdue.
func TestWhatChangesSomethingIsSentOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int32
		ctx, end := context.WithTimeout(t.Context(), 10*time.Second)
		defer end()
		_, cancel, err := hedge(ctx, 10*time.Second, func(ctx context.Context) (*http.Response, error) {
			sent.Add(1)
			<-ctx.Done()
			<-time.After(time.Second)
			return nil, ctx.Err()
		}, nil)
		cancel()
		if got := sent.Load(); got != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("sent %d times, %v", got, err)
		}
	})
}

func TestAPanicInARequestReachesItsCaller(t *testing.T) {
	t.Parallel()
	defer func() {
		if cause := recover(); cause == nil {
			t.Error("no panic")
		}
	}()
	bug := func(context.Context) (*http.Response, error) { panic("a bug") }
	_, cancel, _ := hedge(t.Context(), time.Second, bug, bug)
	cancel()
}
