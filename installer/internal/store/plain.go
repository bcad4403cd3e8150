package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// ErrSymlink is a symbolic link where the store has a folder of its own. The
// folder may belong to somebody with fewer rights than this process, and what is
// removed or written through a link is not in it.
var ErrSymlink = errors.New("a symbolic link in the folder of plugins")

// plain holds that the store's own folders and those above the versions of the
// plugin are folders, as far as they exist.
func (s *Store) plain(p Plugin) error {
	root, err := os.OpenRoot(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, name := range []string{lockDir, stagingDir + "/" + p.hash(), p.escaped} {
		if err := plainPath(root, name); err != nil {
			return fmt.Errorf("%s: %w", s.root, err)
		}
	}
	return nil
}

func plainPath(root *os.Root, name string) error {
	at := ""
	for element := range strings.SplitSeq(name, "/") {
		at = path.Join(at, element)
		info, err := root.Lstat(filepath.FromSlash(at))
		if errors.Is(err, fs.ErrNotExist) || at == "" {
			return nil
		}
		if err != nil {
			return err
		}
		if info.Mode().Type() == fs.ModeSymlink {
			return fmt.Errorf("%w: %s", ErrSymlink, at)
		}
	}
	return nil
}

// clear removes what is staged under a name, and never follows a link out of the
// store, even one that is made at this moment.
func (s *Store) clear(hash string) error {
	root, err := os.OpenRoot(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(root.RemoveAll(filepath.FromSlash(stagingDir+"/"+hash)), root.Close())
}

// clearBeside removes the folders beside the versions of a plugin that never
// became one. Like clear, it follows no link.
func (s *Store) clearBeside(p Plugin) error {
	root, err := os.OpenRoot(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	folder := filepath.FromSlash(p.escaped)
	entries, err := fs.ReadDir(root.FS(), p.escaped)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, entry := range entries {
		if entry.IsDir() && durable.Unfinished(entry.Name()) {
			err = errors.Join(err, root.RemoveAll(filepath.Join(folder, entry.Name())))
		}
	}
	return errors.Join(err, root.Close())
}
