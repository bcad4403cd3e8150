package backoff_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/backoff"
)

func TestPauseDoublesToTenMinutes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var (
		pace backoff.Pace
		got  []time.Duration
	)
	for range 12 {
		pause, counted := pace.Fail(now, pace.Epoch())
		if !counted {
			t.Fatal("a failure of the present epoch did not count")
		}
		if limit := pace.Limit(now.Add(pause - 1)); limit != 0 {
			t.Errorf("limit during a pause of %v: got %d, want 0", pause, limit)
		}
		now = now.Add(pause)
		if limit := pace.Limit(now); limit != 1 {
			t.Errorf("limit after a pause of %v: got %d, want one probe", pause, limit)
		}
		got = append(got, pause)
	}
	s, m := time.Second, time.Minute
	want := []time.Duration{30 * s, m, 2 * m, 4 * m, 8 * m, 10 * m, 10 * m, 10 * m, 10 * m, 10 * m, 10 * m, 10 * m}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

func TestFailuresOfOneRoundCountOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var pace backoff.Pace
	round := pace.Epoch()
	pace.Fail(now, round)
	if _, counted := pace.Fail(now, round); counted {
		t.Error("a second failure of the same round counted")
	}
	if pause, _ := pace.Fail(now, pace.Epoch()); pause != 2*backoff.First {
		t.Errorf("pause after the next round's failure: got %v, want the second", pause)
	}
}

func TestOnlyAServerStartedSinceTheFailureEndsThePause(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var pace backoff.Pace
	before := pace.Epoch()
	pace.Fail(now, before)
	if pace.Succeed(before) {
		t.Error("a server started before the failure ended the pause")
	}
	if !pace.Succeed(pace.Epoch()) {
		t.Error("the probe that came up did not end the pause")
	}
	if got := pace.Limit(now); got != backoff.Unlimited {
		t.Errorf("limit after a success: got %d, want unlimited", got)
	}
}
