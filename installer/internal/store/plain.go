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
	"github.com/radome-io/fleeting-plugin-openstack/internal/reason"
)

// ErrSymlink reports a symbolic link, or a junction of Windows, where the store has
// a folder of its own. The folder may belong to a user with fewer rights than this
// process, and what is removed or written through a link is not in it.
var ErrSymlink = reason.New(reason.ErrDiffers, "symlink", "a symbolic link or junction in the folder of plugins")

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
		// A junction of Windows is an irregular file.
		if info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
			return fmt.Errorf("%w: %s", ErrSymlink, at)
		}
	}
	return nil
}

// clear removes what is staged for a plugin, except files in use: the next process
// tries again. It never follows a link out of the store, even one that is
// made at this moment. What a killed process took from its place comes back first.
func (s *Store) clear(p Plugin) error {
	if err := s.recover(p); err != nil {
		return err
	}
	return s.removeStaged(p.hash())
}

func (s *Store) removeStaged(hash string) error {
	return s.inside(func(root *os.Root) error {
		return unlessInUse(root.RemoveAll(filepath.FromSlash(stagingDir + "/" + hash)))
	})
}

// clearBeside removes the folders beside the versions of a plugin that never
// became one. Like clear, it follows no link.
func (s *Store) clearBeside(p Plugin) error {
	return s.inside(func(root *os.Root) error {
		folder := filepath.FromSlash(p.escaped)
		entries, err := fs.ReadDir(root.FS(), p.escaped)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		for _, entry := range entries {
			if entry.IsDir() && durable.Unfinished(entry.Name()) {
				err = errors.Join(err, unlessInUse(root.RemoveAll(filepath.Join(folder, entry.Name()))))
			}
		}
		return err
	})
}

// inside does something with the store's folder, if it is there.
func (s *Store) inside(do func(*os.Root) error) error {
	root, err := os.OpenRoot(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(do(root), root.Close())
}

func unlessInUse(err error) error {
	if durable.InUse(err) {
		return nil
	}
	return err
}

// recover puts the versions of a plugin back that a killed process took from
// their places.
func (s *Store) recover(p Plugin) error {
	taken, err := s.interrupted(p.hash())
	for _, one := range taken {
		err = errors.Join(err, durable.Recover(one, filepath.Join(s.folder(p), filepath.Base(one))))
	}
	return err
}

// interrupted returns the folders beneath the staging of a plugin that
// [durable.Recover] is for.
func (s *Store) interrupted(hash string) ([]string, error) {
	var found []string
	err := s.inside(func(root *os.Root) error {
		at := stagingDir + "/" + hash
		stages, err := fs.ReadDir(root.FS(), at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, stage := range stages {
			if !stage.IsDir() {
				continue
			}
			names, readErr := fs.ReadDir(root.FS(), at+"/"+stage.Name())
			err = errors.Join(err, readErr)
			for _, name := range names {
				version, ok := durable.Interrupted(name.Name())
				if _, isVersion := versionOf(version); ok && isVersion && name.IsDir() {
					found = append(found, filepath.Join(s.root, filepath.FromSlash(at), stage.Name(), version))
				}
			}
		}
		return err
	})
	return found, err
}
