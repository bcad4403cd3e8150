// Package store is the folder in which plugins are installed: the layout that
// the runner looks plugins up in, and the way things get into it and out of it.
//
//	ROOT/REGISTRY/REPOSITORY/VERSION/plugin      what the runner finds
//	ROOT/REGISTRY/REPOSITORY/VERSION/fleeting-plugin.receipt.json
//	ROOT/.fleeting-plugin/locks/HASH             one lock per plugin
//	ROOT/.fleeting-plugin/staging/HASH/RANDOM    what is not finished yet, or was removed and still runs
//
// The runner takes any folder whose name parses as a version for an installed
// plugin. So nothing stands under such a name before it is complete, and it
// gets there by one rename.
//
// The package does not decide what may be installed; [Store.Stage] takes an
// [admission.Admission], which only a decision yields. It does not fetch.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/mod/module"

	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
	"github.com/radome-io/fleeting-plugin-openstack/internal/reason"
)

const (
	// ReceiptName is the file beside the executable that says where it came from.
	ReceiptName = artifact.ReceiptName

	privateDir = ".fleeting-plugin"
	lockDir    = privateDir + "/locks"
	stagingDir = privateDir + "/staging"

	folderMode   fs.FileMode = 0o755
	receiptMode  fs.FileMode = 0o644
	receiptLimit             = 1 << 20
	lockInterval             = 20 * time.Millisecond
)

var (
	// ErrName is a name under which nothing can be stored so that the runner finds it.
	ErrName = reason.New(reason.ErrInvalid, "name", "cannot be stored under this name")
	// ErrNotInstalled is a plugin or version that is not in the folder.
	ErrNotInstalled = reason.New(reason.ErrNotFound, "not-installed", "not installed")
)

// Store is one folder of plugins. Its methods may be called from any number of
// processes at once.
type Store struct{ root string }

// Open gives the store in the folder root, which need not exist yet.
func Open(root string) (*Store, error) {
	if root == "" {
		return nil, errors.New("no folder to install into was given")
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	return &Store{root: abs}, nil
}

// Root is the absolute path of the folder.
func (s *Store) Root() string { return s.root }

// Plugin is a name that plugins can be stored under. Only [NewPlugin] makes one.
type Plugin struct{ name, escaped string }

// NewPlugin checks a name, registry and repository joined by a slash.
//
// The runner escapes names as Go module paths, which excludes some: registries
// with a port, elements such as con or aux. A name with an element that parses
// as a version is refused as well, because the runner would take that folder
// for an installed version of what is above it. Errors match [ErrName].
func NewPlugin(name string) (Plugin, error) {
	escaped, err := module.EscapePath(name)
	if err != nil {
		return Plugin{}, fmt.Errorf("%s: %w: %s", name, ErrName, whyUnnamable(name, err))
	}
	for element := range strings.SplitSeq(name, "/") {
		if runnerSeesVersion(element) {
			return Plugin{}, fmt.Errorf("%s: %w: the runner would take the folder %q for a version", name, ErrName, element)
		}
	}
	return Plugin{name: name, escaped: escaped}, nil
}

// whyUnnamable says in the words of registries what the rules for module paths
// forbid.
func whyUnnamable(name string, err error) string {
	registry, _, _ := strings.Cut(name, "/")
	if strings.Contains(registry, ":") {
		return "the runner cannot look up a registry with a port"
	}
	if invalid, ok := errors.AsType[*module.InvalidPathError](err); ok {
		err = invalid.Err
	}
	return "the runner cannot look it up: " + err.Error()
}

// runnerSeesVersion says whether the runner may parse the name of a folder as a
// version. Its parser is laxer than ours (leading zeros, signs), so this asks
// only for what every version has.
func runnerSeesVersion(element string) bool {
	parts := strings.SplitN(element, ".", 3)
	if len(parts) != 3 {
		return false
	}
	third, _, _ := strings.Cut(parts[2], "-")
	for _, part := range []string{parts[0], parts[1], third} {
		if part == "" || strings.Trim(part, "0123456789+-") != "" {
			return false
		}
	}
	return true
}

// Name is the name as it was given.
func (p Plugin) Name() string { return p.name }

// hash names the plugin's lock and staging folders: a name of fixed length that
// is no version.
func (p Plugin) hash() string {
	sum := sha256.Sum256([]byte(p.name))
	return hex.EncodeToString(sum[:16])
}

// folder is where the versions of the plugin are.
func (s *Store) folder(p Plugin) string {
	return filepath.Join(s.root, filepath.FromSlash(p.escaped))
}

// Path is the folder of a version, whether it exists or not. Build metadata is
// not part of it.
func (s *Store) Path(p Plugin, v version.Version) (string, error) {
	escaped, err := module.EscapeVersion(v.Core().String())
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %w", p.name, v, ErrName, err)
	}
	return filepath.Join(s.folder(p), escaped), nil
}

// Lock is held while the versions of one plugin change. Release it.
type Lock struct {
	plugin Plugin
	file   *flock.Flock
}

// Release gives the lock to whoever waits.
func (l *Lock) Release() error { return l.file.Unlock() }

// Lock waits until no other process changes the plugin. What the caller knew
// before may be out of date when it returns: look again. Leftovers of killed
// processes are removed.
func (s *Store) Lock(ctx context.Context, p Plugin) (*Lock, error) {
	if err := s.plain(p); err != nil {
		return nil, err
	}
	file, err := s.lockFile(p.hash())
	if err != nil {
		return nil, err
	}
	if _, err := file.TryLockContext(ctx, lockInterval); err != nil {
		return nil, fmt.Errorf("locking %s: %w", p.name, err)
	}
	lock := &Lock{plugin: p, file: file}
	if err := errors.Join(s.clear(p), s.clearBeside(p)); err != nil {
		return nil, errors.Join(fmt.Errorf("removing leftovers: %w", err), lock.Release())
	}
	return lock, nil
}

func (s *Store) lockFile(hash string) (*flock.Flock, error) {
	dir := filepath.Join(s.root, filepath.FromSlash(lockDir))
	if err := durable.MkdirAll(dir, folderMode); err != nil {
		return nil, err
	}
	return flock.New(filepath.Join(dir, hash)), nil
}

func (s *Store) staging(hash string) string {
	return filepath.Join(s.root, filepath.FromSlash(stagingDir), hash)
}
