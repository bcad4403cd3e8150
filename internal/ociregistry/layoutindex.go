package ociregistry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
	"github.com/radome-io/fleeting-plugin-openstack/internal/jsonbound"
)

// indexInterval is how often a layout that another process changes is tried.
const indexInterval = 10 * time.Millisecond

// Bounds of a layout.
const (
	// indexLimit bounds index.json, in bytes, indexValues its values.
	indexLimit  = 8 << 20
	indexValues = 500_000
	// layoutManifests and layoutBytes bound what is read to find referrers.
	layoutManifests = 50_000
	layoutBytes     = 256 << 20
)

// layoutIndex is the file index.json of a layout. Every change reads it, adds to
// it and replaces it, under a lock: a process that is killed leaves the old or
// the new one, and two that write at once keep what the other added.
type layoutIndex struct {
	dir string
	mu  sync.Mutex

	// subjects has the referrers of every subject, for the index.json of this
	// digest.
	of       digest.Digest
	subjects map[digest.Digest][]ocispec.Descriptor
}

// read returns the entries, and the digest of the file.
func (x *layoutIndex) read() ([]ocispec.Descriptor, digest.Digest, error) {
	index, of, err := x.decode()
	return index.Manifests, of, err
}

func (x *layoutIndex) decode() (index ocispec.Index, of digest.Digest, err error) {
	path := filepath.Join(x.dir, ocispec.ImageIndexFile)
	raw, err := readLayoutFile(path, indexLimit)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: no %s file, so no OCI layout", ErrNotFound, ocispec.ImageIndexFile)
	}
	if err != nil {
		return index, "", err
	}
	if err := jsonbound.Check(raw, indexValues); err != nil {
		return index, "", fmt.Errorf("%w: %s: %w", ErrTooLarge, path, err)
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return index, "", fmt.Errorf("%s: %w", path, err)
	}
	for _, entry := range index.Manifests {
		if err := artifact.CheckDescriptor(entry); err != nil {
			return index, "", fmt.Errorf("%s: %w", path, err)
		}
	}
	return index, digest.FromBytes(raw), nil
}

// add records a manifest and points tags at it.
func (x *layoutIndex) add(ctx context.Context, desc ocispec.Descriptor, tags ...string) (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	lock := flock.New(filepath.Join(x.dir, lockedFile))
	// Where the file goes with the lock, another process may be removing it.
	err = durable.WhileInUse(func() error {
		_, err := lock.TryLockContext(ctx, indexInterval)
		return err
	})
	if err != nil {
		return fmt.Errorf("locking %s: %w", x.dir, err)
	}
	defer func() { err = cmp.Or(err, lock.Unlock(), unlocked(lock.Path())) }()
	path := filepath.Join(x.dir, ocispec.ImageIndexFile)
	if err := durable.NoLink(path); err != nil {
		return err
	}
	index, _, err := x.decode()
	if err != nil {
		return err
	}
	index.Manifests = withManifest(index.Manifests, desc, tags)
	raw, err := json.Marshal(index)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, raw, 0o644)
}

// referrers returns those of a subject.
func (x *layoutIndex) referrers(ctx context.Context, from *Layout, subject digest.Digest) ([]ocispec.Descriptor, error) {
	entries, of, err := x.read()
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of != of {
		subjects, err := bySubject(ctx, from, entries)
		if err != nil {
			return nil, err
		}
		x.of, x.subjects = of, subjects
	}
	return slices.Clone(x.subjects[subject]), nil
}

// bySubject reads all manifests that can be reached from the entries of index.json
// through indexes, each once, and sorts those that have a subject by it. Those that
// an index names need not be there.
func bySubject(ctx context.Context, from *Layout, entries []ocispec.Descriptor) (map[digest.Digest][]ocispec.Descriptor, error) {
	subjects := map[digest.Digest][]ocispec.Descriptor{}
	seen := map[digest.Digest]bool{}
	total := int64(0)
	queue := entries
	for len(queue) > 0 {
		desc := plain(queue[0])
		queue = queue[1:]
		if seen[desc.Digest] || !isManifest(desc.MediaType) {
			continue
		}
		seen[desc.Digest] = true
		if total += desc.Size; len(seen)+len(queue) > layoutManifests || total > layoutBytes {
			return nil, fmt.Errorf("%w: more than %d manifests or %d bytes of them", ErrTooLarge, layoutManifests, layoutBytes)
		}
		content, err := from.FetchAll(ctx, desc, artifact.ManifestLimit)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m, err := decodeLinks(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", desc.Digest, err)
		}
		if m.Subject != nil {
			desc.ArtifactType = cmp.Or(m.ArtifactType, m.Config.MediaType)
			subjects[m.Subject.Digest] = append(subjects[m.Subject.Digest], desc)
		}
		queue = append(queue, m.Manifests...)
	}
	for _, found := range subjects {
		slices.SortFunc(found, func(a, b ocispec.Descriptor) int { return cmp.Compare(a.Digest, b.Digest) })
	}
	return subjects, nil
}

// links are what a manifest or an index names of other manifests.
type links struct {
	Subject      *ocispec.Descriptor  `json:"subject"`
	ArtifactType string               `json:"artifactType"`
	Config       ocispec.Descriptor   `json:"config"`
	Manifests    []ocispec.Descriptor `json:"manifests"`
}

func decodeLinks(content []byte) (links, error) {
	var m links
	if err := jsonbound.Check(content, referrerLimit*listingValues); err != nil {
		return m, fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	if err := json.Unmarshal(content, &m); err != nil {
		return m, err
	}
	for _, entry := range m.Manifests {
		if err := artifact.CheckDescriptor(entry); err != nil {
			return m, err
		}
	}
	return m, nil
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
