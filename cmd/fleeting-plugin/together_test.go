package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestTogether holds that what happens side by side ends as it would one after the
// other.
func TestTogether(t *testing.T) {
	t.Parallel()
	list := make([]int, 3*atOnce)
	for n := range list {
		list[n] = n
	}
	t.Run("several at a time, in order", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var now atomic.Int32
			release := make(chan struct{})
			go func() {
				synctest.Wait() // all that may begin has
				if n := now.Load(); n != atOnce {
					t.Errorf("%d at a time, want %d", n, atOnce)
				}
				close(release)
			}()
			got, err := together(t.Context(), list, func(n int) (int, error) {
				now.Add(1)
				<-release
				return n, nil
			})
			if err != nil || !slices.Equal(got, list) {
				t.Errorf("%v, %v", got, err)
			}
		})
	})
	t.Run("all failures, in order", func(t *testing.T) {
		t.Parallel()
		got, err := together(t.Context(), []int{1, 2, 3, 4}, func(n int) (int, error) {
			if n%2 == 0 {
				return 0, fmt.Errorf("no %d", n)
			}
			return n, nil
		})
		if fmt.Sprint(err) != "no 2\nno 4" || !slices.Equal(got, []int{1, 3}) {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		var begun atomic.Int32
		_, err := together(ctx, list, func(int) (int, error) {
			begun.Add(1)
			cancel()
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) || fmt.Sprint(err) != context.Canceled.Error() {
			t.Errorf("got %q", err)
		}
		if n := begun.Load(); n > atOnce {
			t.Errorf("%d began, %d of them after the end", n, n-atOnce)
		}
	})
}
