// Package contextio lets a context end what is being read, for work that is
// nothing but reading, such as the digest of a large file.
package contextio

import (
	"context"
	"io"
)

// Reader returns a reader that reads from r until ctx is done, and then fails
// with the context's error. A read that is under way is not ended.
func Reader(ctx context.Context, r io.Reader) io.Reader { return reader{ctx, r} }

type reader struct {
	ctx context.Context //nolint:containedctx // io.Reader has none
	r   io.Reader
}

func (c reader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
