package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/sync/errgroup"

	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// Entry is a folder that the runner takes for an installed version.
type Entry struct {
	Plugin  Plugin
	Version version.Version
	// Dir is the folder.
	Dir string
	// Receipt is the content of the receipt, nil where there is none: an entry
	// that something else installed, or an empty folder.
	Receipt []byte
}

// Versions returns the installed versions of a plugin, the smallest first. A
// plugin of which nothing is installed has none; that is no error.
//
// Unlike the runner it does not look into deeper folders: what lies there
// belongs to another plugin.
func (s *Store) Versions(p Plugin) ([]Entry, error) {
	found, err := s.folders(p)
	if err != nil {
		return nil, err
	}
	return s.readAll(found)
}

// folders returns the versions of a plugin without their receipts, the smallest
// first.
func (s *Store) folders(p Plugin) ([]Entry, error) {
	dir := s.folder(p)
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []Entry
	for _, name := range names {
		if v, ok := versionOf(name.Name()); ok && name.IsDir() {
			found = append(found, Entry{Plugin: p, Version: v, Dir: filepath.Join(dir, name.Name())})
		}
	}
	slices.SortFunc(found, func(a, b Entry) int { return a.Version.Compare(b.Version) })
	return found, nil
}

// Seen gives what the runner takes for versions of a plugin, the smallest first:
// it looks into deeper folders as well, and then for the version it found there
// right beneath the plugin's, and it reads their names less strictly. So an entry
// may have a folder that does not exist.
func (s *Store) Seen(p Plugin) ([]Entry, error) {
	entries, err := s.Versions(p)
	if err != nil || len(entries) == 0 && !isFolder(s.folder(p)) {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(entry Entry) bool {
		_, ok := runnersVersionOf(filepath.Base(entry.Dir))
		return !ok
	})
	seen := map[string]bool{}
	for _, entry := range entries {
		seen[entry.Version.String()] = true
	}
	err = filepath.WalkDir(s.folder(p), func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed at this moment
		}
		if err != nil || !d.IsDir() {
			return err
		}
		v, ok := runnersVersionOf(d.Name())
		if !ok || seen[v.String()] {
			return nil
		}
		seen[v.String()] = true
		dir, err := s.Path(p, v)
		entries = append(entries, Entry{Plugin: p, Version: v, Dir: dir})
		return err
	})
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.Version.Compare(b.Version) })
	return entries, err
}

func isFolder(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}

// Version gives one installed version, or [ErrNotInstalled].
func (s *Store) Version(p Plugin, v version.Version) (Entry, error) {
	dir, err := s.Path(p, v)
	if err != nil {
		return Entry{}, err
	}
	info, err := os.Lstat(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Entry{}, err
	}
	if err != nil || !info.IsDir() {
		return Entry{}, fmt.Errorf("%s %s: %w in %s", p.name, v.Core(), ErrNotInstalled, s.root)
	}
	return s.read(p, v.Core(), dir)
}

// readsAtOnce is how many receipts are read side by side.
const readsAtOnce = 8

// readAll reads the receipts, and leaves out what was removed meanwhile.
func (s *Store) readAll(found []Entry) ([]Entry, error) {
	entries, there := make([]Entry, len(found)), make([]bool, len(found))
	var group errgroup.Group
	group.SetLimit(readsAtOnce)
	for n, entry := range found {
		group.Go(func() (err error) {
			entries[n], err = s.read(entry.Plugin, entry.Version, entry.Dir)
			there[n] = err == nil
			if errors.Is(err, ErrNotInstalled) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var still []Entry
	for n, entry := range entries {
		if there[n] {
			still = append(still, entry)
		}
	}
	return still, nil
}

func (s *Store) read(p Plugin, v version.Version, dir string) (Entry, error) {
	for range readAttempts {
		receipt, err := ReadReceipt(dir)
		if err == nil {
			return Entry{Plugin: p, Version: v, Dir: dir, Receipt: receipt}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return Entry{}, fmt.Errorf("receipt of %s %s: %w", p.name, v, err)
		}
		if isFolder(dir) {
			return Entry{Plugin: p, Version: v, Dir: dir}, nil
		}
		// Where folders cannot change places in one step, it is away for a moment
		// while it is installed anew.
		time.Sleep(readPause) //nolint:forbidigo // nothing reports when another process has moved it
	}
	return Entry{}, fmt.Errorf("%s %s: %w in %s", p.name, v, ErrNotInstalled, s.root)
}

const (
	readAttempts = 10
	readPause    = 20 * time.Millisecond
)

// ReadReceipt gives the receipt in the folder of a version; the error is that of
// the file system.
func ReadReceipt(dir string) (content []byte, err error) {
	err = durable.WhileInUse(func() error {
		content, err = readReceipt(dir)
		return err
	})
	return content, err
}

func readReceipt(dir string) (_ []byte, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	// Opening a named pipe would wait for ever.
	if info, err := root.Lstat(ReceiptName); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, notRegular(info))
	}
	f, err := root.Open(ReceiptName)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, receiptLimit))
}

func notRegular(info fs.FileInfo) error {
	if info == nil {
		return nil
	}
	return fmt.Errorf("%s is a %s", ReceiptName, info.Mode().Type())
}

func versionOf(folder string) (version.Version, bool) {
	text, err := module.UnescapeVersion(folder)
	if err != nil {
		return version.Version{}, false
	}
	v, err := version.Parse(text)
	return v, err == nil
}

// runnersVersionOf reads the name of a folder as the runner does: leading zeros
// and a plus sign are left out, so that it looks for another folder then, and a
// build is none of a version.
func runnersVersionOf(folder string) (version.Version, bool) {
	text, err := module.UnescapeVersion(folder)
	parts := strings.SplitN(text, ".", 3)
	if err != nil || len(parts) != 3 {
		return version.Version{}, false
	}
	third, pre, hasPre := strings.Cut(parts[2], "-")
	parts[2] = third
	for i, part := range parts {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || strings.Contains(pre, "+") {
			return version.Version{}, false
		}
		parts[i] = strconv.FormatInt(n, 10)
	}
	text = strings.Join(parts, ".")
	if hasPre {
		text += "-" + pre
	}
	v, err := version.Parse(text)
	return v, err == nil
}

// All returns every installed version of every plugin, by name and version.
func (s *Store) All() ([]Entry, error) {
	var found []Entry
	seen := map[string]bool{}
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) && path == s.root {
				return fs.SkipAll
			}
			return err
		}
		if !d.IsDir() || path == s.root {
			return nil
		}
		if strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if _, ok := versionOf(d.Name()); !ok {
			return nil
		}
		p, ok := s.pluginOf(filepath.Dir(path))
		if !ok || seen[p.name] {
			return fs.SkipDir
		}
		seen[p.name] = true
		versions, err := s.folders(p)
		found = append(found, versions...)
		if err != nil {
			return err
		}
		return fs.SkipDir
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b Entry) int { return strings.Compare(a.Plugin.name, b.Plugin.name) })
	return s.readAll(found)
}

func (s *Store) pluginOf(dir string) (Plugin, bool) {
	rel, err := filepath.Rel(s.root, dir)
	if err != nil {
		return Plugin{}, false
	}
	name, err := module.UnescapePath(filepath.ToSlash(rel))
	if err != nil {
		return Plugin{}, false
	}
	p, err := NewPlugin(name)
	return p, err == nil
}

// Remove takes a version of the locked plugin away, first out of sight by one
// rename where that can be, then from the disk. Folders that become empty go too.
// An executable that runs stays out of sight until a later [Store.Lock] or
// [Store.Sweep] can remove it.
func (s *Store) Remove(lock *Lock, v version.Version) error {
	entry, err := s.Version(lock.plugin, v)
	if err != nil {
		return err
	}
	staging := s.staging(lock.plugin.hash())
	if err := durable.MkdirAll(staging, folderMode); err != nil {
		return err
	}
	aside, err := os.MkdirTemp(staging, "removed-")
	if err != nil {
		return err
	}
	if err := durable.TakeDir(entry.Dir, filepath.Join(aside, filepath.Base(entry.Dir))); err != nil {
		return errors.Join(fmt.Errorf("removing %s %s: %w", lock.plugin.name, v, err), s.clear(lock.plugin))
	}
	for dir := s.folder(lock.plugin); dir != s.root; dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			break // not empty
		}
	}
	return s.clear(lock.plugin)
}
