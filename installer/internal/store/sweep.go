package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// Sweep removes what killed processes left behind, of any plugin that nobody
// works on now, and returns of how many plugins it looked through such leftovers.
func (s *Store) Sweep() (int, error) {
	if err := s.plain(Plugin{}); err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(filepath.Join(s.root, filepath.FromSlash(stagingDir)))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	removed := 0
	note := func(swept bool, sweepErr error) {
		err = errors.Join(err, sweepErr)
		if swept {
			removed++
		}
	}
	for _, entry := range entries {
		note(s.whileFree(entry.Name(), func() error { return s.clear(entry.Name()) }))
	}
	beside, walkErr := s.unfinished()
	err = errors.Join(err, walkErr)
	for _, p := range beside {
		note(s.whileFree(p.hash(), func() error { return s.clearBeside(p) }))
	}
	return removed, err
}

// whileFree does something under a plugin's lock, unless somebody has it.
func (s *Store) whileFree(hash string, do func() error) (done bool, err error) {
	file, err := s.lockFile(hash)
	if err != nil {
		return false, err
	}
	free, err := file.TryLock()
	if err != nil || !free {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Unlock()) }()
	return true, do()
}

// unfinished gives the plugins that have folders beside their versions, or in
// place of the only one, that never became a version.
func (s *Store) unfinished() ([]Plugin, error) {
	var plugins []Plugin
	seen := map[string]bool{}
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // another process was faster
		case err != nil:
			return err
		case !d.IsDir() || path == s.root:
			return nil
		}
		if durable.Unfinished(d.Name()) {
			if p, ok := s.pluginOf(filepath.Dir(path)); ok && !seen[p.name] {
				seen[p.name] = true
				plugins = append(plugins, p)
			}
		}
		if _, isVersion := versionOf(d.Name()); isVersion || strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		return nil
	})
	return plugins, err
}
