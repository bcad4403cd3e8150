package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Writer is a file or a folder that others may write.
type Writer struct{ Path, Who string }

// maxLinks bounds the links that are followed, as the system does.
const maxLinks = 40

// Way returns who else may change what lies at a path: the file or folder itself,
// each folder above it, and, where a link is on the way, those above its target.
// Who may write one of them can put something else there. Of a path that does not
// exist it looks at the folders that do.
func Way(path string) ([]Writer, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	w := way{seen: map[string]bool{}}
	err = w.look(path, true)
	return w.found, err
}

type way struct {
	seen  map[string]bool
	links int
	found []Writer
}

// look looks at a path after the folders above it. Last says that it is what
// counts, and not a folder on the way there.
func (w *way) look(path string, last bool) error {
	if parent := filepath.Dir(path); parent != path {
		if err := w.look(parent, false); err != nil {
			return err
		}
	}
	if w.seen[path] {
		return nil
	}
	w.seen[path] = true
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if isLink(info) {
		return w.follow(path, last)
	}
	who, err := replaces(path, info, last)
	if who != "" {
		w.found = append(w.found, Writer{path, who})
	}
	return err
}

func (w *way) follow(path string, last bool) error {
	if w.links++; w.links > maxLinks {
		return fmt.Errorf("%s: more than %d links on the way", path, maxLinks)
	}
	target, err := os.Readlink(path)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(target) {
		above, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return err
		}
		target = filepath.Join(above, target)
	}
	return w.look(filepath.Clean(target), last)
}

func isLink(info fs.FileInfo) bool { return info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 }
