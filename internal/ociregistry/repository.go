package ociregistry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// referrerLimit bounds how many referrers of one manifest are looked at:
// anybody who may push to a repository may add some.
const referrerLimit = 1000

// Repository is one repository of a registry. It is safe for concurrent use.
// Every error is an *Error and, save for cancelled contexts, of one of the
// package's kinds.
type Repository struct {
	ref    registry.Reference
	name   string
	client *Client
	auth   *auth.Client
	known  *manifests
	// noReferrers is set once the registry is known not to have the referrers API.
	noReferrers atomic.Bool
	// attaching is held while the list of referrers under a tag is replaced.
	attaching sync.Mutex
}

// Name returns "host[:port]/path".
func (r *Repository) Name() string { return r.name }

func (r *Repository) at(ref string) string {
	if len(ref) > 7 && ref[:7] == "sha256:" {
		return r.name + "@" + ref
	}
	return r.name + ":" + ref
}

// Resolve returns the descriptor that a tag or digest stands for. It asks once;
// from then on only the digest should be used.
func (r *Repository) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	desc, err := r.resolve(ctx, reference)
	return desc, wrap("resolve", r.at(reference), err)
}

// Fetch opens the content of a descriptor. The reader returns io.EOF only if
// all bytes had the described number and digest, and ErrDigestMismatch
// otherwise: what was read before is not to be trusted until then. Lost
// connections are resumed. Close it.
func (r *Repository) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	rd, err := newVerifiedReader(ctx, desc, r.client.retries, func(ctx context.Context, offset int64) (io.ReadCloser, error) {
		if isManifest(desc.MediaType) {
			return r.openManifest(ctx, desc, offset)
		}
		return r.openBlob(ctx, desc, offset)
	})
	if err != nil {
		return nil, wrap("fetch", r.at(desc.Digest.String()), err)
	}
	return &wrappedReader{ReadCloser: rd, op: "fetch", ref: r.at(desc.Digest.String())}, nil
}

func (r *Repository) openManifest(ctx context.Context, desc ocispec.Descriptor, offset int64) (io.ReadCloser, error) {
	content, ok := r.known.get(desc.Digest)
	if !ok {
		var err error
		if _, content, err = r.manifest(ctx, desc.Digest.String()); err != nil {
			return nil, err
		}
	}
	return io.NopCloser(bytes.NewReader(content[min(offset, int64(len(content))):])), nil
}

// FetchAll returns the verified content of a descriptor, or ErrTooLarge
// without a request when it has more than limit bytes.
func (r *Repository) FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	return fetchAll(ctx, r, desc, limit)
}

// Tags returns all tags, of all pages, in the registry's order. Where the registry
// may have kept some back, it says so in the log.
func (r *Repository) Tags(ctx context.Context) ([]string, error) {
	all, cut, err := r.tags(ctx)
	if cut {
		r.client.logger.Warn("the registry lists tags up to the number that one page may have, and shows no further page: the list may be cut",
			"repository", r.name, "tags", len(all))
	}
	return all, wrap("list tags of", r.name, err)
}

// Referrers returns the manifests whose subject is the given one, through the
// referrers API or, where the registry lacks it or it has nothing, the fallback tag
// (distribution-spec v1.1.1, "Listing Referrers"). Nothing is filtered:
// clients disagree about the artifact type under the fallback tag. A failed
// request is an error, never an empty list.
func (r *Repository) Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	at := r.at(subject.Digest.String())
	if !r.noReferrers.Load() {
		all, known, err := r.referrers(ctx, subject.Digest)
		if err != nil || len(all) > 0 {
			return all, wrap("list referrers of", at, err)
		}
		if !known {
			r.noReferrers.Store(true)
		}
	}
	all, err := r.taggedReferrers(ctx, subject.Digest)
	return all, wrap("list referrers of", at, err)
}

// Exists reports whether the repository has the content.
func (r *Repository) Exists(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	if !isManifest(desc.MediaType) {
		ok, err := r.hasBlob(ctx, desc)
		return ok, wrap("look for", r.at(desc.Digest.String()), err)
	}
	_, _, err := r.manifest(ctx, desc.Digest.String())
	if kindOf(err) == ErrNotFound { //nolint:errorlint // a kind is the bare sentinel
		return false, nil
	}
	return err == nil, wrap("look for", r.at(desc.Digest.String()), err)
}

// Mount asks the registry to take a blob over from another of its
// repositories, and reports whether it did. A refusal is no error: the blob
// can be pushed instead.
func (r *Repository) Mount(ctx context.Context, desc ocispec.Descriptor, from string) (bool, error) {
	query := url.Values{"mount": {desc.Digest.String()}, "from": {from}}
	resp, err := r.do(ctx, request{method: http.MethodPost, path: "blobs/uploads/?" + query.Encode(), push: true, from: from})
	if err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusCreated {
			return true, nil
		}
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	if ctx.Err() != nil {
		return false, wrap("mount", r.at(desc.Digest.String()), err)
	}
	r.client.logger.Debug("blob not mounted", "digest", desc.Digest, "from", from, "error", err)
	return false, nil
}

// wrappedReader names the content in the errors of a reader.
type wrappedReader struct {
	io.ReadCloser
	op, ref string
}

func (w *wrappedReader) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // the reader returns the bare value
		err = wrap(w.op, w.ref, err)
	}
	return n, err
}

type fetcher interface {
	Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error)
}

func fetchAll(ctx context.Context, f fetcher, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	if desc.Size < 0 {
		return nil, wrap("fetch", desc.Digest.String(), fmt.Errorf("%w: size %d", ErrInvalid, desc.Size))
	}
	if desc.Size > limit {
		return nil, wrap("fetch", desc.Digest.String(), fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, desc.Size, limit))
	}
	rc, err := f.Fetch(ctx, desc)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return readAll(rc, desc, limit)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
