//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain has an interruption end the tests by way of their cleanups, rather
// than leave mounts, processes and a rule for qemu behind.
func TestMain(m *testing.M) {
	interruption() // from here on no signal ends this process
	os.Exit(m.Run())
}

// interruption ends when somebody interrupts or terminates the tests, or when
// the process that started them is gone.
var interruption = sync.OnceValue(func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE) // nobody may be left to read what is written
	parent := os.Getppid()
	tick := time.NewTicker(time.Second)
	go func() {
		for {
			select {
			case s := <-signals:
				fmt.Fprintf(os.Stderr, "%s: cleaning up\n", s)
				cancel(fmt.Errorf("interrupted: %s", s))
			case <-tick.C:
				if os.Getppid() != parent {
					cancel(errors.New("the process that started the tests is gone"))
				}
			}
		}
	}()
	return ctx
})

// stepContext is for one step of a test: it ends with the test, after its time,
// with an interruption, and early enough before the tests' own deadline for
// cleanups.
func stepContext(t *testing.T, limit time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	if deadline, ok := t.Deadline(); ok {
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-2*time.Minute))
	}
	stop := context.AfterFunc(interruption(), cancel)
	return ctx, func() { stop(); cancel() }
}

// mustGoOn ends the test if it was interrupted.
func mustGoOn(t *testing.T) {
	t.Helper()
	if err := context.Cause(interruption()); err != nil {
		t.Fatal(err)
	}
}
