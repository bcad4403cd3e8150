// Package untar reads the archives that plugins come in, all of which are taken
// for hostile.
//
// It writes regular files and folders beneath an [os.Root], nothing else:
// links, devices and everything with a suspicious name are refused, and so is
// an archive that is larger, longer or better compressed than a plugin has
// reason to be. It reads its input to the last byte, so that a reader which
// checks a digest at the end has had its say before Extract returns.
//
// It does not decide whether an archive may be installed, and it does not
// rename anything into place.
package untar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/internal/reason"
)

// What is wrong with an archive.
var (
	// ErrUnsafe is an entry that has no place in a plugin: a link, a device, a
	// name that leaves its folder, a duplicate.
	ErrUnsafe = reason.New(reason.ErrBadContent, "hostile", "unsafe archive")
	// ErrLimit is an archive beyond one of the [Limits].
	ErrLimit = reason.New(reason.ErrBadContent, "limit", "archive exceeds a limit")
	// ErrCorrupt is an archive that cannot be read to its end, or that has
	// something behind its end.
	ErrCorrupt = reason.New(reason.ErrBadContent, "corrupt", "corrupt archive")
	// ErrNoExecutable is an archive without the executable that was asked for.
	ErrNoExecutable = errors.New("no plugin executable in the archive")
)

// Limits bound what one archive may cost. A zero field means its default.
type Limits struct {
	// Entries of any kind. Default 10,000.
	Entries int
	// Bytes of the uncompressed archive. Default 2 GiB.
	Bytes int64
	// Ratio of uncompressed to compressed bytes, applied above 16 MiB
	// uncompressed. Default 100; deflate reaches 1,032, a Go executable 4.
	Ratio int64
}

const (
	defaultEntries = 10_000
	defaultBytes   = 2 << 30
	defaultRatio   = 100
	ratioFloor     = 16 << 20
	bufferSize     = 256 << 10
)

// allowed is the number of uncompressed bytes that an archive of the given
// compressed size may have.
func (l Limits) allowed(compressed int64) int64 {
	limit := l.Bytes
	if limit <= 0 {
		limit = defaultBytes
	}
	ratio := l.Ratio
	if ratio <= 0 {
		ratio = defaultRatio
	}
	if compressed < limit/ratio {
		limit = min(limit, max(compressed*ratio, ratioFloor))
	}
	return limit
}

func (l Limits) entries() int {
	if l.Entries <= 0 {
		return defaultEntries
	}
	return l.Entries
}

// Options say what to take from an archive.
type Options struct {
	// Selection is what to take and where the executable is.
	Selection Selection
	// Size is the compressed size in bytes, from the descriptor.
	Size int64
	// Limits on the archive.
	Limits Limits
}

// File is one file that was written.
type File struct {
	// Name relative to the root, with slashes.
	Name string
	// Size in bytes.
	Size int64
	// Digest of the content, sha256.
	Digest digest.Digest
	// Mode is 0755 or 0644.
	Mode fs.FileMode
}

// Extract writes the selected files of the archive beneath root, each synced to
// disk, and returns them in the order of the archive. The compression (gzip,
// zstd, none) is recognised by its first bytes.
//
// On an error what was written stays; the caller drops the whole root. Errors
// of r itself are returned as they are, so that a digest mismatch stays
// recognisable; others match the errors of this package.
func Extract(ctx context.Context, root *os.Root, r io.Reader, opts Options) ([]File, error) {
	source := &sourceReader{ctx: ctx, r: r}
	stream, closeStream, err := decompress(source)
	if err != nil {
		return nil, source.prefer(err)
	}
	defer closeStream()
	limited := &limitReader{r: stream, left: opts.Limits.allowed(opts.Size)}
	x := &extraction{root: root, opts: opts, seen: map[string]claimed{}, made: map[string]bool{}, buffer: make([]byte, bufferSize)}
	if err := x.run(limited); err != nil {
		return nil, source.cause(err, x.buffer)
	}
	if err := drain(limited, source, x.buffer); err != nil {
		return nil, source.cause(err, x.buffer)
	}
	if !x.found && x.removed {
		return nil, fmt.Errorf("%w: a layer removes %s", ErrUnsafe, opts.Selection)
	}
	if !x.found {
		return nil, fmt.Errorf("%w: %s", ErrNoExecutable, opts.Selection)
	}
	return x.files, nil
}

// drain reads what is behind the end marker of the archive. Tar programs pad
// with zeros; anything else is data that somebody hid.
func drain(stream, source io.Reader, buffer []byte) error {
	for {
		n, err := stream.Read(buffer)
		for _, b := range buffer[:n] {
			if b != 0 {
				return fmt.Errorf("%w: data behind the end of the archive", ErrCorrupt)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return corrupt(err)
		}
	}
	// The decompressor may have stopped before the end of its input.
	n, err := io.CopyBuffer(io.Discard, source, buffer)
	if err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("%w: data behind the end of the compressed stream", ErrCorrupt)
	}
	return nil
}

func corrupt(err error) error {
	if errors.Is(err, ErrLimit) || errors.Is(err, ErrUnsafe) || errors.Is(err, ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}
