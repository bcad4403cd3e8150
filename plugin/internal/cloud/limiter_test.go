package cloud

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// through is how many calls pass in ten seconds.
func through(t *testing.T, l *limiter) int {
	t.Helper()
	n := 0
	for began := time.Now(); time.Since(began) < 10*time.Second; n++ {
		if err := l.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestLimiterSaysWhenItIsTheBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := newLimiter(50, rand.Float64, slog.New(slog.NewTextHandler(&log, nil)))
		if got := through(t, l); got < 580 || got > 620 {
			t.Errorf("calls in ten seconds: got %d, want a burst of 100 and 50 a second", got)
		}
		if log.Len() != 0 {
			t.Errorf("one caller does not wait a second for its turn:\n%s", &log)
		}
		for range 200 {
			go func() { _ = l.wait(t.Context()) }()
		}
		<-time.After(20 * time.Minute)
		if got := strings.Count(log.String(), "max_calls_per_second"); got != 1 {
			t.Errorf("lines about it: got %d, want 1\n%s", got, &log)
		}
	})
}

// TestLimiterFindsItsPart: a refusal holds all calls back for as long as the cloud
// asks, and halves their rate, once for those that were under way together. It
// grows again, calls by calls.
func TestLimiterFindsItsPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(50, rand.Float64, slog.New(slog.DiscardHandler))
		for range 5 {
			l.refused(2 * time.Second)
		}
		began := time.Now()
		if err := l.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < 2*time.Second || waited > 3*time.Second {
			t.Errorf("held back for %v, want 2 s and a little more", waited)
		}
		if got := through(t, l); got < 240 || got > 260 {
			t.Errorf("calls in ten seconds: got %d, want half of 500", got)
		}
		for range 20 {
			<-time.After(2 * time.Second)
			l.refused(0)
		}
		if got := through(t, l); got < 38 || got > 42 {
			t.Errorf("calls in ten seconds after many refusals: got %d, want 4 a second", got)
		}
		for range 100 {
			l.passed()
		}
		if got := through(t, l); got < 480 {
			t.Errorf("calls in ten seconds when the cloud refuses none any more: got %d, want 50 a second", got)
		}
	})
}

func TestListingsArePutOffForOtherCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(50, rand.Float64, slog.New(slog.DiscardHandler))
		if l.putsOff(0) {
			t.Error("put off, though the cloud refuses nothing")
		}
		l.refused(time.Minute)
		if !l.putsOff(time.Second) || l.putsOff(time.Minute) {
			t.Error("with no call waiting: want a listing every few seconds")
		}
		go func() { _ = l.wait(t.Context()) }()
		synctest.Wait()
		if !l.putsOff(15*time.Second) || l.putsOff(time.Minute) {
			t.Error("with calls waiting: want a listing after twenty seconds at the latest")
		}
		<-time.After(2 * time.Minute)
	})
}

// TestLogins: each failure of Keystone costs one request, and refused credentials
// wait for an hour or another file.
func TestLogins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := logins{random: rand.Float64}
		tries := func(lasts time.Duration, stamp string, err error) (n int) {
			for began := time.Now(); time.Since(began) < lasts; <-time.After(100 * time.Millisecond) {
				if l.hold(stamp) == nil {
					n++
					l.ended(stamp, err)
				}
			}
			return n
		}
		if got := tries(10*time.Minute, "a", errors.New("down")); got < 25 || got > 60 {
			t.Errorf("logins in ten minutes while Keystone is down: got %d, want one every 15 seconds or so", got)
		}
		<-time.After(time.Minute)
		refused := fmt.Errorf("%w: wrong password", ErrUnauthorized)
		if got := tries(time.Hour, "a", refused); got != 1 {
			t.Errorf("logins in an hour with refused credentials: got %d, want 1", got)
		}
		if err := l.hold("a"); !errors.Is(err, ErrUnauthorized) || !strings.Contains(err.Error(), "not tried again before") {
			t.Errorf("meanwhile: %v", err)
		}
		if err := l.hold("b"); err != nil {
			t.Errorf("with another file: %v", err)
		}
		l.ended("b", nil)
		if err := l.hold("a"); err != nil {
			t.Errorf("after a success: %v", err)
		}
	})
}
