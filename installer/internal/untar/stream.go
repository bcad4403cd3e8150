package untar

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds what a zstd frame may make us allocate. Level 19 uses 8 MiB.
const maxWindow = 16 << 20

// sourceReader remembers the error of the reader below the decompressors, which
// they would wrap or hide, and stops when the context is done.
type sourceReader struct {
	ctx context.Context //nolint:containedctx // lives for one Extract, as the io.Reader contract has no context
	r   io.Reader
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if err := s.ctx.Err(); err != nil {
		s.err = context.Cause(s.ctx)
		return 0, s.err
	}
	n, err := s.r.Read(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// prefer gives the error of the source if it had one, since that is the cause
// of whatever the layers above made of it.
func (s *sourceReader) prefer(err error) error {
	if s.err != nil && !errors.Is(s.err, io.EOF) {
		return s.err
	}
	return err
}

// cause reads the rest of the source after an archive turned out to be broken:
// if its bytes are not those that were asked for, that is the reason to report.
func (s *sourceReader) cause(err error, buffer []byte) error {
	if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrUnsafe) {
		_, _ = io.CopyBuffer(io.Discard, s, buffer) // an error stays in s.err
	}
	return s.prefer(err)
}

// limitReader fails, rather than ends, when more than its share is read.
type limitReader struct {
	r    io.Reader
	left int64
}

func (l *limitReader) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, fmt.Errorf("%w: more bytes than allowed", ErrLimit)
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	l.left -= int64(n)
	if l.left < 0 {
		return n - 1, fmt.Errorf("%w: more bytes than allowed", ErrLimit)
	}
	return n, err
}

// Bounded is r as far as limit bytes and until ctx ends: reading further fails,
// with [ErrLimit] or the context's error, and is never taken for the end.
func Bounded(ctx context.Context, r io.Reader, limit int64) io.Reader {
	return &limitReader{r: &sourceReader{ctx: ctx, r: r}, left: limit}
}

// decompress recognises the compression by its magic number: what a media type
// says is the publisher's claim, and the digest covers the bytes either way.
func decompress(r io.Reader) (io.Reader, func(), error) {
	buffered := bufio.NewReaderSize(r, bufferSize)
	magic, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, nil, corrupt(err)
		}
		return z, func() { _ = z.Close() }, nil
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, corrupt(err)
		}
		return z, z.Close, nil
	case len(magic) == 0:
		return nil, nil, fmt.Errorf("%w: empty", ErrCorrupt)
	}
	return buffered, func() {}, nil
}
