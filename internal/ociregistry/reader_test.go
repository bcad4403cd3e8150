package ociregistry

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// TestResumePauses holds that a download that breaks off is taken up again after
// a pause, each longer than the one before, as an upload is; and not after its
// context has ended.
func TestResumePauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const content = "content"
		desc := ocispec.Descriptor{Digest: digest.FromString(content), Size: int64(len(content))}
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var opened []time.Duration
		open := func(context.Context, int64) (io.ReadCloser, error) {
			opened = append(opened, time.Since(start))
			return io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)), nil
		}
		policy := retries{count: 3, firstWait: time.Second}
		r, err := newVerifiedReader(ctx, desc, policy, open)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v; want the cause", err)
		}
		if len(opened) != 4 {
			t.Fatalf("opened at %v; want 4 times", opened)
		}
		for n, least := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			if pause := opened[n+1] - opened[n]; pause < least {
				t.Errorf("pause %d took %s; want %s at least", n, pause, least)
			}
		}
		r, err = newVerifiedReader(ctx, desc, policy, open)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second/2, cancel)
		if _, err := io.Copy(&strings.Builder{}, r); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled in the pause: %v", err)
		}
	})
}
