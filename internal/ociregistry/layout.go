package ociregistry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// Layout is an OCI image layout folder (image-spec v1.1.1, image-layout.md).
// It has the methods of Repository. It is safe for concurrent use, also by
// several processes; what others add is seen when the layout is opened.
type Layout struct {
	store *oci.Store
	dir   string
	index layoutIndex
}

// CreateLayout opens the layout in dir, making it if it is not there.
func CreateLayout(ctx context.Context, dir string) (*Layout, error) {
	var store *oci.Store
	err := durable.WhileInUse(func() (err error) {
		store, err = oci.NewWithContext(ctx, dir)
		return err
	})
	if err != nil {
		return nil, wrap("open layout", dir, err)
	}
	store.AutoSaveIndex = false // it would write over the file in its place
	return &Layout{store: store, dir: dir, index: layoutIndex{dir: dir}}, nil
}

// OpenLayout opens the layout in dir. A folder that is none is ErrNotFound.
func OpenLayout(ctx context.Context, dir string) (*Layout, error) {
	if _, err := os.Stat(filepath.Join(dir, ocispec.ImageLayoutFile)); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w: no %s file, so no OCI layout", ErrNotFound, ocispec.ImageLayoutFile)
		}
		return nil, wrap("open layout", dir, err)
	}
	return CreateLayout(ctx, dir)
}

// Name returns the folder.
func (l *Layout) Name() string { return l.dir }

func (l *Layout) at(ref string) string { return l.dir + ":" + ref }

// Resolve returns the descriptor of a tag or digest.
func (l *Layout) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	desc, err := l.store.Resolve(ctx, reference)
	if err != nil {
		return ocispec.Descriptor{}, wrap("resolve", l.at(reference), err)
	}
	return plain(desc), nil
}

// Fetch opens the content of a descriptor, verified as Repository.Fetch does.
func (l *Layout) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	ref := l.at(desc.Digest.String())
	rd, err := newVerifiedReader(ctx, desc, retries{}, func(ctx context.Context, _ int64) (io.ReadCloser, error) {
		return l.store.Fetch(ctx, desc)
	})
	if err != nil {
		return nil, wrap("fetch", ref, err)
	}
	return &wrappedReader{ReadCloser: rd, op: "fetch", ref: ref}, nil
}

// FetchAll returns the verified content of a descriptor, or ErrTooLarge.
func (l *Layout) FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	return fetchAll(ctx, l, desc, limit)
}

// Tags returns all tags, sorted.
func (l *Layout) Tags(ctx context.Context) ([]string, error) {
	var all []string
	err := l.store.Tags(ctx, "", func(page []string) error {
		all = append(all, page...)
		return nil
	})
	return all, wrap("list tags of", l.dir, err)
}

// Referrers returns the manifests of the layout whose subject is the given
// one, sorted by digest.
func (l *Layout) Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	parents, err := l.store.Predecessors(ctx, subject)
	if err != nil {
		return nil, wrap("list referrers of", l.at(subject.Digest.String()), err)
	}
	var out []ocispec.Descriptor
	for _, p := range parents {
		b, err := l.FetchAll(ctx, p, artifact.ManifestLimit)
		if err != nil {
			return nil, err
		}
		var m struct {
			Subject      *ocispec.Descriptor `json:"subject"`
			ArtifactType string              `json:"artifactType"`
			Annotations  map[string]string   `json:"annotations"`
		}
		if err := json.Unmarshal(b, &m); err != nil {
			return nil, wrap("list referrers of", l.at(subject.Digest.String()), err)
		}
		if m.Subject != nil && m.Subject.Digest == subject.Digest {
			out = append(out, ocispec.Descriptor{
				MediaType: p.MediaType, Digest: p.Digest, Size: p.Size,
				ArtifactType: m.ArtifactType, Annotations: m.Annotations,
			})
		}
	}
	slices.SortFunc(out, func(a, b ocispec.Descriptor) int {
		return bytes.Compare([]byte(a.Digest), []byte(b.Digest))
	})
	return out, nil
}

// Exists reports whether the layout has the content.
func (l *Layout) Exists(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	ok, err := l.store.Exists(ctx, desc)
	return ok, wrap("look for", l.at(desc.Digest.String()), err)
}

// PushBlob stores a blob unless it is there, and reports whether it did.
func (l *Layout) PushBlob(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) (bool, error) {
	ref := l.at(desc.Digest.String())
	if ok, err := l.Exists(ctx, desc); err != nil || ok {
		return false, err
	}
	body, err := open()
	if err != nil {
		return false, wrap("push blob", ref, err)
	}
	defer body.Close()
	err = l.store.Push(ctx, desc, body)
	if errors.Is(err, errdef.ErrAlreadyExists) {
		return false, nil
	}
	return err == nil, wrap("push blob", ref, err)
}

// Ingest stores what write produces as a blob whose digest is known only
// afterwards: it is hashed on its way to a file beside its final place, and
// renamed into it. Nothing stays behind when write fails.
func (l *Layout) Ingest(mediaType string, write func(io.Writer) error) (_ ocispec.Descriptor, err error) {
	blobs := filepath.Join(l.dir, ocispec.ImageBlobsDir, digest.SHA256.String())
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return ocispec.Descriptor{}, wrap("ingest into", l.dir, err)
	}
	f, err := os.CreateTemp(l.dir, ".ingest-*")
	if err != nil {
		return ocispec.Descriptor{}, wrap("ingest into", l.dir, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
			err = wrap("ingest into", l.dir, err)
		}
	}()
	d := digest.SHA256.Digester()
	if err := write(io.MultiWriter(f, d.Hash())); err != nil {
		return ocispec.Descriptor{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	if err := errors.Join(f.Chmod(0o444), f.Close()); err != nil {
		return ocispec.Descriptor{}, err
	}
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: d.Digest(), Size: info.Size()}
	target := filepath.Join(blobs, desc.Digest.Encoded())
	if _, err := os.Lstat(target); err == nil {
		// Windows replaces no file that may not be written.
		return desc, os.Remove(f.Name())
	}
	return desc, durable.Rename(f.Name(), target)
}

// PushManifest stores a manifest or index and points the tags at it.
func (l *Layout) PushManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error {
	err := l.store.Push(ctx, desc, bytes.NewReader(content))
	if err != nil && !errors.Is(err, errdef.ErrAlreadyExists) {
		return wrap("push manifest", l.at(desc.Digest.String()), err)
	}
	for _, tag := range tags {
		if err := l.store.Tag(ctx, plain(desc), tag); err != nil {
			return wrap("tag", l.at(tag), err)
		}
	}
	return wrap("push manifest", l.at(desc.Digest.String()), l.index.add(ctx, plain(desc), tags...))
}

// Attach stores manifests that have one subject.
func (l *Layout) Attach(ctx context.Context, _ ocispec.Descriptor, referrers ...Manifest) error {
	for _, m := range referrers {
		if err := l.PushManifest(ctx, m.Descriptor, m.Content); err != nil {
			return err
		}
	}
	return nil
}

// Tag points a tag at a manifest that is there.
func (l *Layout) Tag(ctx context.Context, desc ocispec.Descriptor, tag string) error {
	if err := l.store.Tag(ctx, plain(desc), tag); err != nil {
		return wrap("tag", l.at(tag), err)
	}
	return wrap("tag", l.at(tag), l.index.add(ctx, plain(desc), tag))
}

// plain leaves out annotations: that which names the tag belongs to index.json.
func plain(desc ocispec.Descriptor) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size}
}
