package packager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// layerStore takes layers whose digest is known only when they are written.
type layerStore interface {
	// has says whether a layer is there already.
	has(ctx context.Context, desc ocispec.Descriptor) (bool, error)
	// put keeps what write writes: name is the platform's. write may be called more than once and
	// writes the same bytes each time.
	put(ctx context.Context, name string, write func(io.Writer) error) (ocispec.Descriptor, error)
}

// layoutStore writes each layer once, into its place.
type layoutStore struct{ layout *ociregistry.Layout }

func (s layoutStore) has(context.Context, ocispec.Descriptor) (bool, error) {
	return false, nil // a layout is always written anew
}

func (s layoutStore) put(_ context.Context, _ string, write func(io.Writer) error) (ocispec.Descriptor, error) {
	return s.layout.Ingest(ocispec.MediaTypeImageLayerGzip, write)
}

// nullStore only measures, for plans.
type nullStore struct{}

func (nullStore) has(context.Context, ocispec.Descriptor) (bool, error) { return true, nil }

func (nullStore) put(_ context.Context, _ string, write func(io.Writer) error) (ocispec.Descriptor, error) {
	return measure(io.Discard, write)
}

// measure returns the descriptor of what write writes, and passes it on.
func measure(w io.Writer, write func(io.Writer) error) (ocispec.Descriptor, error) {
	d := digest.SHA256.Digester()
	n := &counter{}
	if err := write(io.MultiWriter(w, d.Hash(), n)); err != nil {
		return ocispec.Descriptor{}, err
	}
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayerGzip, Digest: d.Digest(), Size: n.n}, nil
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// remoteStore uploads layers. A registry wants the digest first, so the
// compressed layer is held in memory; one for which there is not enough is
// compressed a second time, straight into the upload. Nothing touches the disk.
type remoteStore struct {
	to     Repository
	memory *chunks
	report func(Event)
}

const chunkSize = 1 << 20

// chunks is the memory for compressed layers. All layers that are written at a
// time share it, and one after the other they use the same memory.
type chunks struct {
	mu   sync.Mutex
	free []*[chunkSize]byte
	// left is how many more may be made.
	left int
}

// take returns a chunk, or nil if all are in use.
func (c *chunks) take() *[chunkSize]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		chunk := c.free[n-1]
		c.free = c.free[:n-1]
		return chunk
	}
	if c.left == 0 {
		return nil
	}
	c.left--
	return new([chunkSize]byte)
}

func (c *chunks) give(back []*[chunkSize]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, back...)
}

func (s *remoteStore) has(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	return s.to.Exists(ctx, desc)
}

func (s *remoteStore) put(ctx context.Context, name string, write func(io.Writer) error) (ocispec.Descriptor, error) {
	buf := &boundedBuffer{memory: s.memory}
	defer buf.release()
	desc, err := measure(buf, write)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(buf.reader()), nil }
	if buf.over {
		open = func() (io.ReadCloser, error) { return stream(write), nil }
	}
	uploaded, err := s.to.PushBlob(ctx, desc, uploading(s.report, name, desc, open))
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("pushing layer %s: %w", desc.Digest, err)
	}
	s.report(blobEvent(desc, uploaded))
	return desc, nil
}

// errStopped ends a stream whose reader was closed early.
var errStopped = errors.New("reader closed")

// stream runs write as a reader.
func stream(write func(io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(write(w)) }()
	return streamReader{r}
}

type streamReader struct{ *io.PipeReader }

func (s streamReader) Close() error { return s.CloseWithError(errStopped) }

// boundedBuffer keeps what is written unless there is not enough memory for it;
// then it keeps nothing.
type boundedBuffer struct {
	memory *chunks
	chunks []*[chunkSize]byte
	size   int
	over   bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 && !b.over {
		at := b.size % chunkSize
		if at == 0 {
			chunk := b.memory.take()
			if chunk == nil {
				b.over = true
				b.release()
				break
			}
			b.chunks = append(b.chunks, chunk)
		}
		n := copy(b.chunks[len(b.chunks)-1][at:], p)
		p = p[n:]
		b.size += n
	}
	return written, nil
}

func (b *boundedBuffer) reader() io.Reader {
	readers := make([]io.Reader, len(b.chunks))
	for i, c := range b.chunks {
		end := min(chunkSize, b.size-i*chunkSize)
		readers[i] = bytes.NewReader(c[:end])
	}
	return io.MultiReader(readers...)
}

func (b *boundedBuffer) release() {
	b.memory.give(b.chunks)
	b.chunks = nil
}
