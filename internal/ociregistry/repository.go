package ociregistry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
)

// referrerLimit bounds how many referrers of one manifest are looked at:
// anybody who may push to a repository may add some.
const referrerLimit = 1000

// Repository is one repository of a registry. It is safe for concurrent use.
// Every error is an *Error and, save for cancelled contexts, of one of the
// package's kinds.
type Repository struct {
	remote *remote.Repository
	name   string
	client *Client
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
	desc, err := r.remote.Resolve(ctx, reference)
	return desc, wrap("resolve", r.at(reference), err)
}

// Fetch opens the content of a descriptor. The reader returns io.EOF only if
// all bytes had the described number and digest, and ErrDigestMismatch
// otherwise: what was read before is not to be trusted until then. Lost
// connections are resumed. Close it.
func (r *Repository) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	rd, err := newVerifiedReader(ctx, desc, r.client.retries, func(ctx context.Context) (io.ReadCloser, error) {
		return r.remote.Fetch(ctx, desc)
	})
	if err != nil {
		return nil, wrap("fetch", r.at(desc.Digest.String()), err)
	}
	return &wrappedReader{ReadCloser: rd, op: "fetch", ref: r.at(desc.Digest.String())}, nil
}

// FetchAll returns the verified content of a descriptor, or ErrTooLarge
// without a request when it has more than limit bytes.
func (r *Repository) FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	return fetchAll(ctx, r, desc, limit)
}

// Tags returns all tags, of all pages, in the registry's order.
func (r *Repository) Tags(ctx context.Context) ([]string, error) {
	var all []string
	err := r.remote.Tags(ctx, "", func(page []string) error {
		all = append(all, page...)
		return nil
	})
	return all, wrap("list tags of", r.name, err)
}

// Referrers returns the manifests whose subject is the given one, through the
// referrers API or, where the registry lacks it, the fallback tag
// (distribution-spec v1.1.1, "Listing Referrers"). Nothing is filtered:
// clients disagree about the artifact type under the fallback tag. A failed
// request is an error, never an empty list.
func (r *Repository) Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	var all []ocispec.Descriptor
	err := r.remote.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		if all = append(all, page...); len(all) > referrerLimit {
			return fmt.Errorf("%w: over %d referrers", ErrTooLarge, referrerLimit)
		}
		return nil
	})
	return all, wrap("list referrers of", r.at(subject.Digest.String()), err)
}

// Exists reports whether the repository has the content.
func (r *Repository) Exists(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	ok, err := r.remote.Exists(ctx, desc)
	return ok, wrap("look for", r.at(desc.Digest.String()), err)
}

// errNoMount stops oras-go from uploading when a mount was not possible.
var errNoMount = errors.New("not mounted")

// Mount asks the registry to take a blob over from another of its
// repositories, and reports whether it did. A refusal is no error: the blob
// can be pushed instead.
func (r *Repository) Mount(ctx context.Context, desc ocispec.Descriptor, from string) (bool, error) {
	err := r.remote.Mount(ctx, desc, from, func() (io.ReadCloser, error) { return nil, errNoMount })
	if err == nil {
		return true, nil
	}
	if ctx.Err() != nil {
		return false, wrap("mount", r.at(desc.Digest.String()), err)
	}
	r.client.logger.Debug("blob not mounted", "digest", desc.Digest, "from", from, "error", err)
	return false, nil
}

// PushManifest uploads a manifest or index and points the tags at it, in
// order. What it names must be there already. A subject is announced through
// the registry's own referrers API or the fallback tag.
func (r *Repository) PushManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error {
	if err := r.remote.Push(ctx, desc, bytes.NewReader(content)); err != nil {
		return wrap("push manifest", r.at(desc.Digest.String()), err)
	}
	for _, tag := range tags {
		if err := r.remote.PushReference(ctx, desc, bytes.NewReader(content), tag); err != nil {
			return wrap("tag", r.at(tag), err)
		}
	}
	return nil
}

// Tag points a tag at a manifest that is there.
func (r *Repository) Tag(ctx context.Context, desc ocispec.Descriptor, tag string) error {
	return wrap("tag", r.at(tag), r.remote.Tag(ctx, desc, tag))
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
