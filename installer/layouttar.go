package installer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/untar"
)

const (
	maxLayoutFiles = 200_000
	maxLayoutBytes = 64 << 30
)

// layoutFile matches the files that a layout in a tar file may have.
var layoutFile = regexp.MustCompile(`^(oci-layout|index\.json|trusted-root\.json|blobs/[a-z0-9]+/[0-9a-f]+)$`)

// WriteLayoutTar writes a layout folder as one tar file: sorted, without times
// or owners, so that the same layout gives the same bytes.
func WriteLayoutTar(ctx context.Context, dir string, w io.Writer) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	var names []string
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && layoutFile.MatchString(name) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(names, compareLayoutNames)
	archive := tar.NewWriter(w)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := writeLayoutFile(ctx, archive, root, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return archive.Close()
}

// compareLayoutNames puts the small files that say what it is first.
func compareLayoutNames(a, b string) int {
	inBlobs := func(s string) int { return boolToInt(strings.HasPrefix(s, "blobs/")) }
	if c := inBlobs(a) - inBlobs(b); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

func writeLayoutFile(ctx context.Context, archive *tar.Writer, root *os.Root, name string) (err error) {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, untar.Bounded(ctx, f, info.Size()))
	return err
}

// ExtractLayoutTar writes the layout in a tar file into an empty folder. Nothing
// but the files of a layout is accepted; their digests are checked when they are
// read, so the tar file itself need not be trusted. Errors match [ErrBadContent] (hostile),
// [ErrBadContent] (limit) or [ErrBadContent] (corrupt).
func ExtractLayoutTar(ctx context.Context, r io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	archive := tar.NewReader(untar.Bounded(ctx, r, maxLayoutBytes))
	for count := 0; ; count++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return brokenTar(ctx, err)
		}
		if count == maxLayoutFiles {
			return fmt.Errorf("%w: more than %d files", errLimit, maxLayoutFiles)
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		name := strings.TrimPrefix(header.Name, "./")
		if header.Typeflag != tar.TypeReg || !layoutFile.MatchString(name) {
			return fmt.Errorf("%w: %.80q has no place in a layout", errHostile, header.Name)
		}
		if err := extractLayoutFile(ctx, root, name, archive); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

// brokenTar says what a failure to read the archive is: a limit, the end of the
// context, or else a fault of the file.
func brokenTar(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, errLimit) {
		return err
	}
	return fmt.Errorf("%w: %w", errCorrupt, err)
}

func extractLayoutFile(ctx context.Context, root *os.Root, name string, content io.Reader) (err error) {
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: it comes twice", errHostile)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	from := &errorReader{r: content}
	if _, err := io.Copy(f, from); err != nil {
		if from.err != nil {
			return brokenTar(ctx, err)
		}
		return err // of our own disk
	}
	return nil
}

// errorReader remembers that it failed, to tell its failures from the writer's.
type errorReader struct {
	r   io.Reader
	err error
}

func (e *errorReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		e.err = err
	}
	return n, err
}
