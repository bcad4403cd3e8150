package packager

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/progress"
)

// LayerFile is a file in the layer of a plugin.
type LayerFile struct {
	// Name is the file's in the plugin's folder. A file that the runner's
	// installer would not put there has its whole path in the layer.
	Name string `json:"name"`
	// Size is that of the content, in bytes.
	Size int64 `json:"size"`
	// Executable says whether it may be started.
	Executable bool `json:"executable,omitempty"`
	// Digest is that of the content.
	Digest digest.Digest `json:"digest,omitempty"`
	// Kind is set for what is not a regular file, such as a symbolic link.
	Kind string `json:"kind,omitempty"`
}

// contents are the files that go into the layer of a platform.
func (l layer) contents(ctx context.Context) ([]LayerFile, error) {
	var files []LayerFile
	for _, f := range l.in.Files() {
		sum, err := l.from.Sum(ctx, f)
		if err != nil {
			return nil, err
		}
		files = append(files, LayerFile{Name: f.Name(), Size: f.Size(), Executable: f.Executable(), Digest: digest.NewDigestFromEncoded(digest.SHA256, sum)})
	}
	return files, nil
}

// Bounds of listing the files of one artifact, whatever its platforms.
const (
	// fetchedLimit bounds the layers, contentsLimit what they unpack to, in bytes.
	fetchedLimit  = 2 << 30
	contentsLimit = 4 << 30
	// filesLimit bounds how many files are listed.
	filesLimit = 20_000
)

// errContents says what was too much.
var errContents = fmt.Errorf("%w: the layers have more than %d bytes, %d unpacked, or %d files", ociregistry.ErrTooLarge, int64(fetchedLimit), int64(contentsLimit), filesLimit)

// allowance is what is left of the bounds, for all layers together.
type allowance struct{ fetched, contents, files atomic.Int64 }

func newAllowance() *allowance {
	a := &allowance{}
	a.fetched.Store(fetchedLimit)
	a.contents.Store(contentsLimit)
	a.files.Store(filesLimit)
	return a
}

// allowed reads no more than there is left.
type allowed struct {
	io.Reader
	left *atomic.Int64
}

func (a allowed) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if a.left.Add(-int64(n)) < 0 {
		return n, errContents
	}
	return n, err
}

// listLayer reads a layer and returns its files, in the layer's order. Folders
// are left out. Read is told how many bytes have come.
func listLayer(ctx context.Context, from Content, desc ocispec.Descriptor, left *allowance, read func(done int64)) ([]LayerFile, error) {
	if desc.Size > left.fetched.Load() {
		return nil, fmt.Errorf("layer %s: %w", desc.Digest, errContents)
	}
	fetched, err := from.Fetch(ctx, plain(desc))
	if err != nil {
		return nil, err
	}
	defer fetched.Close()
	content := progress.Reader(allowed{fetched, &left.fetched}, desc.Size, read)
	unpacked, err := decompress(content)
	if err != nil {
		return nil, unreadable(desc, content, err)
	}
	archive := tar.NewReader(allowed{unpacked, &left.contents})
	files := []LayerFile{}
	for {
		h, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			// Only at its end is the content known to be what was asked for.
			_, err := io.Copy(io.Discard, content)
			return files, err
		case err != nil:
			return nil, unreadable(desc, content, err)
		case left.files.Add(-1) < 0:
			return nil, fmt.Errorf("layer %s: %w", desc.Digest, errContents)
		case h.Typeflag == tar.TypeDir:
			continue
		}
		f := LayerFile{Name: inPluginDir(h.Name), Size: h.Size, Executable: h.FileInfo().Mode()&0o111 != 0}
		if h.Typeflag != tar.TypeReg {
			f.Kind = kindOf(h)
		}
		sum := digest.SHA256.Digester()
		if _, err := io.Copy(sum.Hash(), archive); err != nil { //nolint:gosec // bounded by the allowance
			return nil, unreadable(desc, content, fmt.Errorf("%s: %w", h.Name, err))
		}
		if f.Kind == "" {
			f.Digest = sum.Digest()
		}
		files = append(files, f)
	}
}

// unreadable says why a layer cannot be unpacked. If its bytes are not those that
// were published, which only their end tells, that is why; what is too much is not
// read to its end.
func unreadable(desc ocispec.Descriptor, content io.Reader, err error) error {
	if errors.Is(err, errContents) {
		return fmt.Errorf("layer %s: %w", desc.Digest, err)
	}
	if _, rest := io.Copy(io.Discard, content); rest != nil {
		return fmt.Errorf("layer %s: %w", desc.Digest, rest)
	}
	return fmt.Errorf("layer %s: %w: %w", desc.Digest, errMalformed, err)
}

// inPluginDir takes the plugin's folder off the name of an entry: below Files in
// an image for Windows.
func inPluginDir(name string) string {
	for _, dir := range []string{artifact.PluginDir + "/", "Files/" + artifact.PluginDir + "/"} {
		if rest, ok := strings.CutPrefix(name, dir); ok {
			return rest
		}
	}
	return name
}

func kindOf(h *tar.Header) string {
	switch h.Typeflag {
	case tar.TypeSymlink:
		return fmt.Sprintf("symbolic link to %q", h.Linkname)
	case tar.TypeLink:
		return fmt.Sprintf("hard link to %q", h.Linkname)
	}
	return fmt.Sprintf("special file of type %q", h.Typeflag)
}

// decompress finds the compression by its magic number.
func decompress(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, copyBuffer)
	magic, err := buffered.Peek(4)
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffered)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(16<<20))
		if err != nil {
			return nil, err
		}
		return z, nil // which decodes in Read, and holds nothing to close
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	}
	return buffered, nil
}
