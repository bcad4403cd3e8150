package ociregistry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/contextio"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// Layout is an OCI image layout folder (image-spec v1.1.1, image-layout.md).
// It has the methods of Repository. It is safe for concurrent use, also by
// several processes.
//
// A folder that someone else made is no more trusted than a registry: what it
// holds is read within bounds, and nothing but regular files.
type Layout struct {
	dir   string
	index layoutIndex
}

// layoutVersion is the file that says that a folder is a layout.
const layoutVersion = `{"imageLayoutVersion":"` + ocispec.ImageLayoutVersion + `"}`

// CreateLayout opens the layout in dir, making it if it is not there.
func CreateLayout(_ context.Context, dir string) (*Layout, error) {
	index, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{}})
	if err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(filepath.Join(dir, ocispec.ImageBlobsDir), 0o755); err != nil {
		return nil, wrap("open layout", dir, err)
	}
	for name, content := range map[string][]byte{ocispec.ImageLayoutFile: []byte(layoutVersion), ocispec.ImageIndexFile: index} {
		_, err := os.Stat(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = durable.WriteFile(filepath.Join(dir, name), content, 0o644)
		}
		if err != nil {
			return nil, wrap("open layout", dir, err)
		}
	}
	return newLayout(dir)
}

// OpenLayout opens the layout in dir. A folder that is none is ErrNotFound.
func OpenLayout(_ context.Context, dir string) (*Layout, error) { return newLayout(dir) }

func newLayout(dir string) (*Layout, error) {
	content, err := readLayoutFile(filepath.Join(dir, ocispec.ImageLayoutFile), layoutFileLimit)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: no %s file, so no OCI layout", ErrNotFound, ocispec.ImageLayoutFile)
	}
	if err != nil {
		return nil, wrap("open layout", dir, err)
	}
	var said ocispec.ImageLayout
	if err := json.Unmarshal(content, &said); err != nil || said.Version != ocispec.ImageLayoutVersion {
		return nil, wrap("open layout", dir, fmt.Errorf("%w: %s says version %.40q", ErrUnsupported, ocispec.ImageLayoutFile, said.Version))
	}
	return &Layout{dir: dir, index: layoutIndex{dir: dir}}, nil
}

// layoutFileLimit bounds the file that says that a folder is a layout, in bytes.
const layoutFileLimit = 64 << 10

// openLayoutFile opens a regular file: anything else might never end.
func openLayoutFile(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%w: %s is not a regular file", ErrInvalid, path)
	}
	f, err := os.Open(path)
	return f, info, err
}

// readLayoutFile reads a file of at most limit bytes, which others may be replacing.
func readLayoutFile(path string, limit int64) (content []byte, err error) {
	err = durable.WhileInUse(func() error {
		content, err = readFile(path, limit)
		return err
	})
	return content, err
}

func readFile(path string, limit int64) ([]byte, error) {
	f, _, err := openLayoutFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%w: %s has more than %d bytes", ErrTooLarge, path, limit)
	}
	return content, err
}

// blob is where the content of a digest is, which must be valid.
func (l *Layout) blob(d digest.Digest) string {
	return filepath.Join(l.dir, ocispec.ImageBlobsDir, d.Algorithm().String(), d.Encoded())
}

// Name returns the folder.
func (l *Layout) Name() string { return l.dir }

func (l *Layout) at(ref string) string { return l.dir + ":" + ref }

// Resolve returns the descriptor of a tag or digest.
func (l *Layout) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	desc, err := l.resolve(ctx, reference)
	return desc, wrap("resolve", l.at(reference), err)
}

func (l *Layout) resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	entries, _, err := l.index.read()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	want, isDigest := digest.Digest(reference), strings.Contains(reference, ":") && digest.Digest(reference).Validate() == nil
	for _, entry := range slices.Backward(entries) {
		if entry.Annotations[ocispec.AnnotationRefName] == reference || isDigest && entry.Digest == want {
			return plain(entry), nil
		}
	}
	if !isDigest {
		return ocispec.Descriptor{}, ErrNotFound
	}
	// It may be in an index that is there.
	content, err := readLayoutFile(l.blob(want), artifact.ManifestLimit)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	desc := ocispec.Descriptor{Digest: want, Size: int64(len(content))}
	if desc.MediaType, err = manifestType("", content); err != nil {
		return ocispec.Descriptor{}, err
	}
	_, err = l.FetchAll(ctx, desc, artifact.ManifestLimit) // which compares the digest
	return desc, err
}

// Fetch opens the content of a descriptor, verified as Repository.Fetch does.
func (l *Layout) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	ref := l.at(desc.Digest.String())
	rd, err := newVerifiedReader(ctx, desc, retries{}, func(context.Context, int64) (io.ReadCloser, error) {
		f, info, err := openLayoutFile(l.blob(desc.Digest))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, ErrNotFound
		case err != nil:
			return nil, err
		case info.Size() != desc.Size:
			_ = f.Close()
			return nil, fmt.Errorf("%w: %d bytes for %s, want %d", ErrDigestMismatch, info.Size(), desc.Digest, desc.Size)
		}
		return f, nil
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
func (l *Layout) Tags(context.Context) ([]string, error) {
	entries, _, err := l.index.read()
	if err != nil {
		return nil, wrap("list tags of", l.dir, err)
	}
	var all []string
	for _, entry := range entries {
		if tag := entry.Annotations[ocispec.AnnotationRefName]; tag != "" {
			all = append(all, tag)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Referrers returns the manifests of the layout whose subject is the given
// one, sorted by digest, without their annotations. Those count that index.json
// names, or an index that is named there.
func (l *Layout) Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	found, err := l.index.referrers(ctx, l, subject.Digest)
	return found, wrap("list referrers of", l.at(subject.Digest.String()), err)
}

// Exists reports whether the layout has the content.
func (l *Layout) Exists(_ context.Context, desc ocispec.Descriptor) (bool, error) {
	ref := l.at(desc.Digest.String())
	if err := desc.Digest.Validate(); err != nil {
		return false, wrap("look for", ref, fmt.Errorf("%w: digest %.80q: %w", ErrInvalid, desc.Digest, err))
	}
	info, err := os.Stat(l.blob(desc.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Mode().IsRegular() && info.Size() == desc.Size, wrap("look for", ref, err)
}

// PushBlob stores a blob unless it is there, and reports whether it did.
func (l *Layout) PushBlob(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) (bool, error) {
	ref := l.at(desc.Digest.String())
	if ok, err := l.Exists(ctx, desc); err != nil || ok {
		return false, err
	}
	verified, err := newVerifiedReader(ctx, desc, retries{}, func(context.Context, int64) (io.ReadCloser, error) { return open() })
	if err != nil {
		return false, wrap("push blob", ref, err)
	}
	defer func() { _ = verified.Close() }()
	_, err = l.ingest(desc.MediaType, desc.Digest.Algorithm(), func(w io.Writer) error {
		_, err := io.Copy(w, contextio.Reader(ctx, verified))
		return err
	})
	return err == nil, wrap("push blob", ref, err)
}

// Ingest stores what write produces as a blob whose digest is known only
// afterwards: it is hashed on its way to a file beside its final place, and
// renamed into it. Nothing stays behind when write fails.
func (l *Layout) Ingest(mediaType string, write func(io.Writer) error) (ocispec.Descriptor, error) {
	desc, err := l.ingest(mediaType, digest.SHA256, write)
	return desc, wrap("ingest into", l.dir, err)
}

func (l *Layout) ingest(mediaType string, algorithm digest.Algorithm, write func(io.Writer) error) (_ ocispec.Descriptor, err error) {
	if err := durable.MkdirAll(filepath.Join(l.dir, ocispec.ImageBlobsDir, algorithm.String()), 0o755); err != nil {
		return ocispec.Descriptor{}, err
	}
	f, err := os.CreateTemp(l.dir, ".ingest-*")
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	d := algorithm.Digester()
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
	if there, err := os.Lstat(l.blob(desc.Digest)); err == nil && there.Mode().IsRegular() && there.Size() == desc.Size {
		// Windows replaces no file that may not be written.
		return desc, os.Remove(f.Name())
	}
	return desc, durable.Rename(f.Name(), l.blob(desc.Digest))
}

// PushManifest stores a manifest or index and points the tags at it.
func (l *Layout) PushManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error {
	_, err := l.PushBlob(ctx, desc, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err == nil {
		err = l.index.add(ctx, plain(desc), tags...)
	}
	return wrap("push manifest", l.at(desc.Digest.String()), err)
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
	there, err := l.Exists(ctx, desc)
	if err == nil && !there {
		err = ErrNotFound
	}
	if err == nil {
		err = l.index.add(ctx, plain(desc), tag)
	}
	return wrap("tag", l.at(tag), err)
}

// plain leaves out annotations: that which names the tag belongs to index.json.
func plain(desc ocispec.Descriptor) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size}
}
