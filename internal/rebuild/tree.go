package rebuild

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/contextio"
)

// Bounds on a source: files and folders, bytes of its files, and bytes of a clone
// with its history.
const (
	maxFiles = 200_000
	maxTree  = 4 << 30
	maxClone = 4 << 30
)

// ErrTooLarge reports a source that is larger than one of the bounds.
var ErrTooLarge = errors.New("the source is too large")

// tree copies the files of a source to a place of its own. It follows no link, and
// takes along no repository: those name programs that git runs.
type tree struct {
	from, to *os.Root
	files    int
	bytes    int64
	links    []string
	// leftOut are the names that were not copied, or were removed again.
	leftOut []string
}

// copyTree copies the files beneath one folder into another, which is empty, and
// returns the names of those that it left out: links that lead out of the source,
// and what is neither a file nor a folder.
func copyTree(ctx context.Context, from, to string) (leftOut []string, err error) {
	t := &tree{}
	if t.from, err = os.OpenRoot(from); err != nil {
		return nil, err
	}
	defer func() { _ = t.from.Close() }()
	if t.to, err = os.OpenRoot(to); err != nil {
		return nil, err
	}
	defer func() { _ = t.to.Close() }()
	err = fs.WalkDir(t.from.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		return t.entry(ctx, filepath.FromSlash(name), d)
	})
	if err != nil {
		return nil, fmt.Errorf("copying %s: %w", from, err)
	}
	return t.leftOut, t.dropLinks()
}

// isRepository reports whether a name is that of a repository's own folder, on any
// file system.
func isRepository(name string) bool { return strings.EqualFold(strings.TrimRight(name, ". "), ".git") }

func (t *tree) entry(ctx context.Context, name string, d fs.DirEntry) error {
	if name == "." {
		return nil
	}
	if isRepository(d.Name()) {
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if t.files++; t.files > maxFiles {
		return fmt.Errorf("%w: more than %d files and folders", ErrTooLarge, maxFiles)
	}
	switch d.Type() {
	case fs.ModeDir:
		return t.to.Mkdir(name, 0o755)
	case 0:
		return t.file(ctx, name)
	case fs.ModeSymlink:
		target, err := t.from.Readlink(name)
		if err != nil {
			return err
		}
		t.links = append(t.links, name)
		return t.to.Symlink(target, name)
	default:
		t.leftOut = append(t.leftOut, name)
		return nil
	}
}

func (t *tree) file(ctx context.Context, name string) (err error) {
	info, err := t.from.Lstat(name)
	if err != nil {
		return err
	}
	if t.bytes += info.Size(); t.bytes > maxTree {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, int64(maxTree))
	}
	in, err := t.from.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := t.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|info.Mode().Perm()&0o111)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.CopyN(out, contextio.Reader(ctx, in), info.Size()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// dropLinks removes the links that lead out of the tree, by way of other links,
// too.
func (t *tree) dropLinks() error {
	for _, name := range t.links {
		_, err := t.to.Stat(name)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := t.to.Remove(name); err != nil {
			return err
		}
		t.leftOut = append(t.leftOut, name)
	}
	return nil
}

// confineLinks removes the links that lead out of a tree that git checked out, and
// names them.
func confineLinks(dir string) (leftOut []string, err error) {
	t := &tree{}
	if t.to, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	defer func() { _ = t.to.Close() }()
	err = fs.WalkDir(t.to.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type() == fs.ModeSymlink {
			t.links = append(t.links, filepath.FromSlash(name))
		}
		if err == nil && d.IsDir() && isRepository(d.Name()) {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return t.leftOut, t.dropLinks()
}
