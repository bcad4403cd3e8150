package ociregistry

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// openBlob starts a download at an offset. A registry that knows no ranges begins
// at the first byte; what was read already is skipped.
func (r *Repository) openBlob(ctx context.Context, desc ocispec.Descriptor, offset int64) (io.ReadCloser, error) {
	q := request{method: http.MethodGet, path: "blobs/" + desc.Digest.String()}
	if offset > 0 {
		q.header = map[string]string{"Range": fmt.Sprintf("bytes=%d-%d", offset, desc.Size-1)}
	}
	resp, err := r.do(ctx, q)
	if err != nil {
		if offset > 0 && statusOf(err) == http.StatusRequestedRangeNotSatisfiable {
			return nil, fmt.Errorf("%w: %w", ErrDigestMismatch, err) // it has fewer bytes than that
		}
		return nil, ofStorage(r.ref.Host(), err)
	}
	whole := resp.StatusCode != http.StatusPartialContent
	skip := offset
	if !whole {
		if want := fmt.Sprintf("bytes %d-", offset); !strings.HasPrefix(resp.Header.Get("Content-Range"), want) {
			_ = resp.Body.Close()
			return nil, fmt.Errorf("%w: Content-Range %q, want %q", ErrAnswer, line(resp.Header.Get("Content-Range")), want)
		}
		skip = 0
	}
	body, err := r.blobBody(resp, desc, whole)
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, body, skip); err != nil {
		_ = body.Close()
		return nil, fmt.Errorf("skipping what was read: %w", err)
	}
	return body, nil
}

// blobBody notices a length that cannot be right before anything is read, and
// undoes a compression that was not asked for.
func (r *Repository) blobBody(resp *http.Response, desc ocispec.Descriptor, whole bool) (io.ReadCloser, error) {
	if !whole || resp.ContentLength == desc.Size {
		return resp.Body, nil
	}
	if isZipped(resp.Header) {
		z, err := gzip.NewReader(resp.Body)
		if err != nil {
			return nil, fmt.Errorf("%w: Content-Encoding gzip: %w", ErrAnswer, err)
		}
		return rejoined{z, resp.Body}, nil
	}
	if resp.ContentLength >= 0 {
		return nil, fmt.Errorf("%w: %d bytes are announced for %s, want %d", ErrDigestMismatch, resp.ContentLength, desc.Digest, desc.Size)
	}
	return resp.Body, nil
}

// ofStorage says that it was not the registry that refused, but the storage that
// it redirected to, by a URL that is valid for a while.
func ofStorage(host string, err error) error {
	r, ok := errors.AsType[*refusal](err)
	if !ok || !r.redirected {
		return err
	}
	storage := *r
	storage.kind = ErrStorage
	return fmt.Errorf("%s redirected to its storage: %w", host, &storage)
}

// hasBlob asks whether a blob is there: by HEAD, and where that is not offered, or
// is refused by the storage behind the registry, by the first byte. A blob that
// may not be seen is as good as one that is not there.
func (r *Repository) hasBlob(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	path := "blobs/" + desc.Digest.String()
	resp, err := r.do(ctx, request{method: http.MethodHead, path: path})
	if answer, ok := errors.AsType[*refusal](err); ok && answer.kind != ErrNotFound && (answer.redirected || isMissingCall(answer.status)) { //nolint:errorlint // a kind is the bare sentinel
		resp, err = r.do(ctx, request{method: http.MethodGet, path: path, header: map[string]string{"Range": "bytes=0-0"}})
	}
	switch {
	case err == nil:
		// A server that answers everything with success does not know the length.
		other := resp.Request.Method == http.MethodHead && resp.ContentLength >= 0 && resp.ContentLength != desc.Size && !isZipped(resp.Header)
		return !other, resp.Body.Close()
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrForbidden), statusOf(err) == http.StatusRequestedRangeNotSatisfiable:
		return false, nil
	}
	return false, err
}

// isMissingCall reports whether a status says that a registry does not offer a
// call: it is answered so by those that have never heard of it.
func isMissingCall(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusGone, http.StatusNotImplemented:
		return true
	}
	return false
}
