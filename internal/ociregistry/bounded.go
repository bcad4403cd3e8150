package ociregistry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Bounds of what is read to learn what there is about one artifact: its tags,
// manifests, referrers and evidence, not its layers. Whoever may push to the
// repository decides how much there is, and the registry how fast it comes.
const (
	boundedRequests = 2000
	boundedBytes    = 64 << 20
	boundedTime     = 10 * time.Minute
)

// Reader is what a [Repository] and a [Layout] read.
type Reader interface {
	Tags(ctx context.Context) ([]string, error)
	Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error)
	Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error)
	FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error)
	Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error)
}

// Bounded reads with bounds on requests, bytes and time in all. Beyond the first
// two, every answer is [ErrExhausted]; beyond the last, [ErrUnavailable]. What
// Fetch reads is not counted.
type Bounded struct {
	Reader
	mu              sync.Mutex
	requests, bytes int64
	spent           time.Duration
}

// NewBounded returns a reader that begins to count.
func NewBounded(from Reader) *Bounded { return &Bounded{Reader: from} }

// errSlow ends what takes too long in all.
var errSlow = fmt.Errorf("%w: its answers took more than %v in all", ErrUnavailable, boundedTime)

// bounded makes one request that may bring some bytes.
func bounded[T any](ctx context.Context, b *Bounded, bytes int64, ask func(context.Context) (T, error)) (T, error) {
	var none T
	b.mu.Lock()
	b.requests++
	b.bytes += bytes
	requests, total, left := b.requests, b.bytes, boundedTime-b.spent
	b.mu.Unlock()
	switch {
	case requests > boundedRequests:
		return none, fmt.Errorf("%w: more than %d requests about one artifact", ErrExhausted, boundedRequests)
	case total > boundedBytes:
		return none, fmt.Errorf("%w: more than %d bytes about one artifact", ErrExhausted, boundedBytes)
	case left <= 0:
		return none, errSlow
	}
	began := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, left, errSlow)
	defer cancel()
	answer, err := ask(limited)
	b.mu.Lock()
	b.spent += time.Since(began)
	b.mu.Unlock()
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(limited), errSlow) {
		return none, fmt.Errorf("%w (%s)", errSlow, err.Error())
	}
	return answer, err
}

// Tags returns all tags.
func (b *Bounded) Tags(ctx context.Context) ([]string, error) {
	return bounded(ctx, b, 0, b.Reader.Tags)
}

// Resolve returns the descriptor of a tag or digest.
func (b *Bounded) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	return bounded(ctx, b, 0, func(ctx context.Context) (ocispec.Descriptor, error) { return b.Reader.Resolve(ctx, reference) })
}

// FetchAll returns the content of a descriptor.
func (b *Bounded) FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	if desc.Size > limit || desc.Size < 0 {
		return b.Reader.FetchAll(ctx, desc, limit) // which refuses it
	}
	return bounded(ctx, b, desc.Size, func(ctx context.Context) ([]byte, error) { return b.Reader.FetchAll(ctx, desc, limit) })
}

// Referrers returns the manifests that have a subject.
func (b *Bounded) Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	return bounded(ctx, b, 0, func(ctx context.Context) ([]ocispec.Descriptor, error) { return b.Reader.Referrers(ctx, subject) })
}
