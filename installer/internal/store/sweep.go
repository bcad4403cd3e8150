package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// Sweep removes what killed processes left behind, and what was removed and runs
// no more, of any plugin that no process works on now. It returns of how many
// plugins it looked through such leftovers.
func (s *Store) Sweep() (int, error) {
	if err := s.plain(Plugin{}); err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(filepath.Join(s.root, filepath.FromSlash(stagingDir)))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	known, beside, walkErr := s.plugins()
	err = errors.Join(err, walkErr)
	removed := 0
	note := func(swept bool, sweepErr error) {
		err = errors.Join(err, sweepErr)
		if swept {
			removed++
		}
	}
	for _, entry := range entries {
		note(s.whileFree(entry.Name(), func() error { return s.sweepStaged(entry.Name(), known) }))
	}
	for _, p := range beside {
		note(s.whileFree(p.hash(), func() error { return s.clearBeside(p) }))
	}
	return removed, err
}

// sweepStaged removes what is staged for the plugin of that hash. Of a plugin
// without a folder it is not known where versions were taken from; they stay until
// the plugin is locked by its name.
func (s *Store) sweepStaged(hash string, known map[string]Plugin) error {
	if p, ok := known[hash]; ok {
		return s.clear(p)
	}
	taken, err := s.interrupted(hash)
	if err != nil || len(taken) > 0 {
		return err
	}
	return s.removeStaged(hash)
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

// plugins returns every folder that may be a plugin's, by the hash of its name,
// and the plugins that have folders beside their versions, or in place of the only
// one, that never became a version.
func (s *Store) plugins() (known map[string]Plugin, beside []Plugin, err error) {
	known = map[string]Plugin{}
	seen := map[string]bool{}
	err = filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
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
				beside = append(beside, p)
			}
		}
		if _, isVersion := versionOf(d.Name()); isVersion || strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if p, ok := s.pluginOf(path); ok {
			known[p.hash()] = p
		}
		return nil
	})
	return known, beside, err
}
