package ociregistry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// indexInterval is how often a layout that another process changes is tried.
const indexInterval = 10 * time.Millisecond

// layoutIndex is the file index.json of a layout. Every change reads it, adds to
// it and replaces it, under a lock: a process that is killed leaves the old or
// the new one, and two that write at once keep what the other added.
type layoutIndex struct {
	dir string
	mu  sync.Mutex
}

// add records a manifest and points tags at it.
func (x *layoutIndex) add(ctx context.Context, desc ocispec.Descriptor, tags ...string) (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	lock := flock.New(filepath.Join(x.dir, lockedFile))
	if _, err := lock.TryLockContext(ctx, indexInterval); err != nil {
		return fmt.Errorf("locking %s: %w", x.dir, err)
	}
	defer func() { err = cmp.Or(err, lock.Unlock(), unlocked(lock.Path())) }()
	path := filepath.Join(x.dir, ocispec.ImageIndexFile)
	if err := durable.NoLink(path); err != nil {
		return err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var index ocispec.Index
	if err := json.Unmarshal(raw, &index); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	index.Manifests = withManifest(index.Manifests, desc, tags)
	if raw, err = json.Marshal(index); err != nil {
		return err
	}
	return durable.WriteFile(path, raw, 0o644)
}

// withManifest gives the entries with one more, in an order that depends on them
// only: what has a tag comes first, which is what tools take that look for one. A
// manifest is there once for each of its tags, or once without any.
func withManifest(entries []ocispec.Descriptor, desc ocispec.Descriptor, tags []string) []ocispec.Descriptor {
	tagged := map[string]ocispec.Descriptor{}
	all := map[string]ocispec.Descriptor{desc.Digest.String(): desc}
	for _, entry := range entries {
		if tag := entry.Annotations[ocispec.AnnotationRefName]; tag != "" {
			tagged[tag] = entry
			entry = plain(entry)
		}
		all[entry.Digest.String()] = entry
	}
	for _, tag := range tags {
		entry := desc
		entry.Annotations = map[string]string{ocispec.AnnotationRefName: tag}
		tagged[tag] = entry
	}
	out := make([]ocispec.Descriptor, 0, len(tagged)+len(all))
	for _, entry := range tagged {
		out = append(out, entry)
		delete(all, entry.Digest.String())
	}
	for _, entry := range all {
		out = append(out, entry)
	}
	slices.SortFunc(out, func(a, b ocispec.Descriptor) int {
		tagA, tagB := a.Annotations[ocispec.AnnotationRefName], b.Annotations[ocispec.AnnotationRefName]
		return cmp.Or(cmp.Compare(tagB, tagA), cmp.Compare(a.Digest, b.Digest))
	})
	return out
}
