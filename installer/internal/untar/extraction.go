package untar

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

const (
	modeExecutable fs.FileMode = 0o755
	modeFile       fs.FileMode = 0o644
	modeFolder     fs.FileMode = 0o755
)

// kind is what a name was used for already.
type kind byte

const (
	kindFile kind = iota + 1
	kindFolder
)

// claimed is a name as it was first spelled.
type claimed struct {
	name string
	as   kind
}

// extraction is the state of one Extract.
type extraction struct {
	root   *os.Root
	opts   Options
	seen   map[string]claimed
	files  []File
	made   map[string]bool
	buffer []byte
	// found says that the executable was written, removed that the layer takes
	// away one of a layer below.
	found, removed bool
}

func (x *extraction) run(r io.Reader) error {
	archive := tar.NewReader(r)
	for count := 1; ; count++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return corrupt(err)
		}
		if count > x.opts.Limits.entries() {
			return fmt.Errorf("%w: more than %d entries", ErrLimit, x.opts.Limits.entries())
		}
		if err := x.entry(header, archive); err != nil {
			return err
		}
	}
}

func (x *extraction) entry(header *tar.Header, content io.Reader) error {
	selection := x.opts.Selection
	name, err := selection.normalName(header.Name)
	if err != nil || name == "" {
		return err
	}
	if selection.removesExecutable(name) {
		x.removed = true
		return nil
	}
	target, action := selection.target(name)
	if action == take {
		err = checkName(target)
	}
	if err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		switch action {
		case take:
			return x.folder(target)
		case refuse:
			return checkName(name)
		case pass:
			return nil
		}
	case tar.TypeReg:
		return x.regular(target, action, header, content)
	case tar.TypeXGlobalHeader:
		return nil
	}
	if action == pass {
		return nil
	}
	return fmt.Errorf("%w: %.80q is a %s", ErrUnsafe, header.Name, typeName(header.Typeflag))
}

func (x *extraction) regular(target string, action action, header *tar.Header, content io.Reader) error {
	switch action {
	case refuse:
		return fmt.Errorf("%w: file %.80q is outside plugin/", ErrUnsafe, header.Name)
	case pass:
		return nil
	case take:
	}
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return fmt.Errorf("%w: %.80q is a sparse file", ErrUnsafe, header.Name)
		}
	}
	return x.file(target, header.Mode&0o111 != 0, content)
}

func (x *extraction) folder(name string) error {
	if err := x.claim(name, kindFolder); err != nil {
		return err
	}
	return x.makeFolder(name)
}

// makeFolder creates a folder and those above it, with a mode that the umask
// does not narrow: another user runs what root installed.
func (x *extraction) makeFolder(name string) error {
	if x.made[name] {
		return nil
	}
	if above, _, ok := cutLast(name); ok {
		if err := x.makeFolder(above); err != nil {
			return err
		}
	}
	if err := x.root.Mkdir(name, modeFolder); err != nil {
		return fmt.Errorf("creating folder %s: %w", name, err)
	}
	if err := x.root.Chmod(name, modeFolder); err != nil {
		return fmt.Errorf("setting the mode of %s: %w", name, err)
	}
	x.made[name] = true
	return nil
}

func (x *extraction) file(name string, executable bool, content io.Reader) error {
	if err := x.claim(name, kindFile); err != nil {
		return err
	}
	if dir, _, ok := cutLast(name); ok {
		if err := x.makeFolder(dir); err != nil {
			return err
		}
	}
	isPlugin := name == x.opts.Selection.as
	mode := modeFile
	if isPlugin || executable {
		mode = modeExecutable
	}
	written, err := x.write(name, mode, content)
	if err != nil {
		return err
	}
	if isPlugin {
		if written.Size == 0 {
			return fmt.Errorf("%w: %s is empty", ErrNoExecutable, name)
		}
		x.found = true
	}
	x.files = append(x.files, written)
	return nil
}

func (x *extraction) write(name string, mode fs.FileMode, content io.Reader) (_ File, err error) {
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return File{}, fmt.Errorf("creating %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	hash := sha256.New()
	to := &localWriter{w: f}
	size, err := io.CopyBuffer(io.MultiWriter(to, hash), struct{ io.Reader }{content}, x.buffer)
	if to.err != nil {
		return File{}, fmt.Errorf("writing %s: %w", name, to.err)
	}
	if err != nil {
		return File{}, corrupt(fmt.Errorf("reading %s: %w", name, err))
	}
	// The umask may have taken bits away.
	if err := f.Chmod(mode); err != nil {
		return File{}, fmt.Errorf("setting the mode of %s: %w", name, err)
	}
	if err := f.Sync(); err != nil {
		return File{}, fmt.Errorf("syncing %s: %w", name, err)
	}
	return File{Name: name, Size: size, Digest: digest.NewDigest(digest.SHA256, hash), Mode: mode}, nil
}

// localWriter keeps the error of a write: a disk that is full is no fault of the
// archive.
type localWriter struct {
	w   io.Writer
	err error
}

func (l *localWriter) Write(b []byte) (n int, err error) {
	n, l.err = l.w.Write(b)
	return n, l.err
}

// claim takes a name, and its folders, once. Of names that are one file on some
// system it takes one spelling only.
func (x *extraction) claim(name string, as kind) error {
	if err := x.claimOne(name, as); err != nil {
		return err
	}
	for dir, _, ok := cutLast(name); ok; dir, _, ok = cutLast(dir) {
		if err := x.claimOne(dir, kindFolder); err != nil {
			return err
		}
	}
	return nil
}

func (x *extraction) claimOne(name string, as kind) error {
	key := artifact.FoldFileName(name)
	earlier, taken := x.seen[key]
	switch {
	case !taken:
		x.seen[key] = claimed{name, as}
	case earlier.name != name:
		return fmt.Errorf("%w: %q and %q are one name on some systems", ErrUnsafe, earlier.name, name)
	case earlier.as != kindFolder || as != kindFolder:
		return fmt.Errorf("%w: %q comes twice", ErrUnsafe, name)
	}
	return nil
}

func typeName(flag byte) string {
	switch flag {
	case tar.TypeLink:
		return "hard link"
	case tar.TypeSymlink:
		return "symbolic link"
	case tar.TypeChar, tar.TypeBlock:
		return "device"
	case tar.TypeFifo:
		return "named pipe"
	case tar.TypeGNUSparse:
		return "sparse file"
	}
	return fmt.Sprintf("entry of type %q", flag)
}
