package ociregistry

import (
	"context"
	"fmt"
	"hash"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// opener starts a download at an offset.
type opener func(ctx context.Context, offset int64) (io.ReadCloser, error)

// verifiedReader hands on the bytes of a blob and answers io.EOF only when
// their number and digest are those of the descriptor. Lost connections are
// taken up again where they broke off.
type verifiedReader struct {
	ctx     context.Context //nolint:containedctx // a reader outlives the call that opened it
	open    opener
	body    io.ReadCloser
	desc    ocispec.Descriptor
	hash    hash.Hash
	read    int64
	policy  retries
	resumed int
	final   error
}

// newVerifiedReader opens a blob. It is taken up again as often as the policy
// allows, with its pauses: a registry that has just broken off needs them.
func newVerifiedReader(ctx context.Context, desc ocispec.Descriptor, policy retries, open opener) (*verifiedReader, error) {
	if err := desc.Digest.Validate(); err != nil {
		return nil, fmt.Errorf("%w: digest %q: %w", ErrInvalid, desc.Digest, err)
	}
	body, err := open(ctx, 0)
	if err != nil {
		return nil, err
	}
	return &verifiedReader{
		ctx: ctx, open: open, body: body, desc: desc,
		hash: desc.Digest.Algorithm().Hash(), policy: policy,
	}, nil
}

// Read implements io.Reader. After the last byte it returns io.EOF, or an
// error of kind ErrDigestMismatch if the bytes are not the described ones.
func (r *verifiedReader) Read(p []byte) (int, error) {
	if r.final != nil {
		return 0, r.final
	}
	if r.read >= r.desc.Size {
		r.final = r.verify()
		return 0, r.final
	}
	if rest := r.desc.Size - r.read; int64(len(p)) > rest {
		p = p[:rest]
	}
	n, err := r.body.Read(p)
	r.hash.Write(p[:n])
	r.read += int64(n)
	if err == nil || n > 0 {
		return n, nil // a lasting error comes again with the next call
	}
	if err := r.resume(err); err != nil {
		r.final = err
		return 0, err
	}
	return 0, nil
}

// verify reads past the end: bytes that follow the described ones mean that
// the content is another one, even if its beginning has the right digest.
func (r *verifiedReader) verify() error {
	var extra [1]byte
	if n, _ := io.ReadFull(r.body, extra[:]); n > 0 {
		return fmt.Errorf("%w: more than %d bytes for %s", ErrDigestMismatch, r.desc.Size, r.desc.Digest)
	}
	if got := fmt.Sprintf("%s:%x", r.desc.Digest.Algorithm(), r.hash.Sum(nil)); got != r.desc.Digest.String() {
		return fmt.Errorf("%w: content is %s, want %s", ErrDigestMismatch, got, r.desc.Digest)
	}
	return io.EOF
}

// resume opens the content again where it broke off. An early end is
// treated as a lost connection; if it persists, the content is too short.
func (r *verifiedReader) resume(cause error) error {
	if cause == io.EOF { //nolint:errorlint // readers return the bare value
		cause = fmt.Errorf("%w: %d of %d bytes for %s", ErrDigestMismatch, r.read, r.desc.Size, r.desc.Digest)
	} else if !brokeOff(cause) {
		return cause
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if r.resumed >= r.policy.count {
		return cause
	}
	_ = r.body.Close()
	if err := sleep(r.ctx, r.policy.wait(r.resumed)); err != nil {
		return err
	}
	r.resumed++
	body, err := r.open(r.ctx, r.read)
	if err != nil {
		return fmt.Errorf("resuming after %w: %w", cause, err)
	}
	r.body = body
	return nil
}

// Close implements io.Closer.
func (r *verifiedReader) Close() error { return r.body.Close() }

// readAll reads verified content of at most limit bytes.
func readAll(r io.Reader, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	if desc.Size > limit {
		return nil, fmt.Errorf("%w: %s has %d bytes, limit %d", ErrTooLarge, desc.Digest, desc.Size, limit)
	}
	b := make([]byte, desc.Size)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		return nil, err
	}
	return b, nil
}
