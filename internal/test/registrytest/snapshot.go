package registrytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Manifest is a manifest as it was pushed.
type Manifest struct {
	// Repository and Reference, a tag or a digest, are where.
	Repository, Reference string
	MediaType             string
	Content               []byte
}

// holdings are what a registry was given: manifests in the order in which they
// came, and blobs.
type holdings struct {
	mu        sync.Mutex
	manifests []Manifest
	blobs     map[v1.Hash][]byte
	// beneath are the blobs of a snapshot. They do not change.
	beneath map[v1.Hash][]byte
}

// Snapshot is what a registry of [NewReferrers] held at some time, to start
// others with. The zero value is empty.
type Snapshot struct {
	manifests []Manifest
	blobs     map[v1.Hash][]byte
}

// Snapshot returns what the registry holds now ([NewReferrers] only).
func (r *Registry) Snapshot() *Snapshot {
	r.held.mu.Lock()
	defer r.held.mu.Unlock()
	s := &Snapshot{manifests: slices.Clone(r.held.manifests), blobs: map[v1.Hash][]byte{}}
	for _, from := range []map[v1.Hash][]byte{r.held.beneath, r.held.blobs} {
		maps.Copy(s.blobs, from)
	}
	return s
}

// Manifests returns what was pushed, in order ([NewReferrers] only).
func (r *Registry) Manifests() []Manifest {
	r.held.mu.Lock()
	defer r.held.mu.Unlock()
	return slices.Clone(r.held.manifests)
}

// Start starts a registry that holds what the snapshot has.
func (s *Snapshot) Start(tb testing.TB, opts ...Option) *Registry {
	tb.Helper()
	held := &holdings{blobs: map[v1.Hash][]byte{}, beneath: s.blobs}
	handler := held.recording(ggcr.New(
		ggcr.WithReferrersSupport(true), ggcr.WithBlobHandler(held), ggcr.Logger(log.New(io.Discard, "", 0)),
	))
	for _, m := range s.manifests {
		r := httptest.NewRequestWithContext(tb.Context(), http.MethodPut, "/v2/"+m.Repository+"/manifests/"+m.Reference, bytes.NewReader(m.Content))
		r.Header.Set("Content-Type", m.MediaType)
		if rec := record(handler, r); rec.Code != http.StatusCreated {
			tb.Fatalf("manifest %s/%s of a snapshot: %d %s", m.Repository, m.Reference, rec.Code, rec.Body)
		}
	}
	r := serve(tb, handler, collect(opts))
	r.held = held
	return r
}

// recording remembers the manifests that are pushed, and says of one that its
// subject was seen, which the specification asks for and go-containerregistry
// leaves out.
func (h *holdings) recording(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := manifestPath.FindStringSubmatch(r.URL.Path)
		if r.Method != http.MethodPut || at == nil {
			next.ServeHTTP(w, r)
			return
		}
		content, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(content))
		rec := record(next, r)
		if rec.Code == http.StatusCreated {
			h.mu.Lock()
			h.manifests = append(h.manifests, Manifest{at[1], at[2], r.Header.Get("Content-Type"), content})
			h.mu.Unlock()
		}
		var m struct {
			Subject *struct{ Digest string } `json:"subject"`
		}
		if json.Unmarshal(content, &m) == nil && m.Subject != nil {
			rec.Header().Set("Oci-Subject", m.Subject.Digest)
		}
		send(w, rec)
	})
}

var (
	_ ggcr.BlobStatHandler = (*holdings)(nil)
	_ ggcr.BlobPutHandler  = (*holdings)(nil)
)

func (h *holdings) blob(hash v1.Hash) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, in := range []map[v1.Hash][]byte{h.blobs, h.beneath} {
		if content, ok := in[hash]; ok {
			return content, nil
		}
	}
	return nil, ggcr.ErrNotFound
}

// Get returns a blob.
func (h *holdings) Get(_ context.Context, _ string, hash v1.Hash) (io.ReadCloser, error) {
	content, err := h.blob(hash)
	return seekable{bytes.NewReader(content)}, err
}

// Stat returns the size of a blob.
func (h *holdings) Stat(_ context.Context, _ string, hash v1.Hash) (int64, error) {
	content, err := h.blob(hash)
	return int64(len(content)), err
}

// Put stores a blob.
func (h *holdings) Put(_ context.Context, _ string, hash v1.Hash, from io.ReadCloser) error {
	content, err := io.ReadAll(from)
	if err = errors.Join(err, from.Close()); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blobs[hash] = content
	return nil
}

// seekable lets go-containerregistry answer with ranges.
type seekable struct{ *bytes.Reader }

// Close does nothing.
func (seekable) Close() error { return nil }
