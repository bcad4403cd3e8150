package installer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/store"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
)

// Folder is a folder with installed plugins, in the runner's layout. It answers
// without any network, and it needs no policy.
type Folder struct{ store *store.Store }

// OpenFolder gives the folder dir, which need not exist yet.
func OpenFolder(dir string) (*Folder, error) {
	s, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{s}, nil
}

// DefaultFolder is where GitLab Runner looks for plugins: FLEETING_PLUGIN_PATH,
// else fleeting/plugins in APPDATA on Windows, in .config in HOME elsewhere.
// lookup is [os.LookupEnv] or a stand-in. Without any of them it is an error,
// never a folder relative to the current one.
func DefaultFolder(lookup func(string) (string, bool)) (string, error) {
	return places.Of(lookup).Plugins()
}

// Dir is the absolute path of the folder.
func (f *Folder) Dir() string { return f.store.Root() }

// Installed is one installed version of a plugin.
type Installed struct {
	// Dir is the folder of the version, Path the executable in it.
	Dir  string `json:"dir"`
	Path string `json:"path"`
	// Receipt says where it came from. Foreign versions have none.
	Receipt Receipt `json:"receipt"`
	// Foreign says that something else put it there, so that nothing is known
	// about it. The runner takes it all the same.
	Foreign bool `json:"foreign,omitempty"`
	// JustInstalled says that the call that gave this installed it; without it,
	// it was there.
	JustInstalled bool `json:"changed,omitempty"`
}

func newInstalled(dir string, receipt Receipt, justNow bool) Installed {
	return Installed{
		Dir: dir, Path: filepath.Join(dir, filepath.FromSlash(receipt.Executable)), Receipt: receipt, JustInstalled: justNow,
	}
}

// complete says whether the executable is there, without reading it.
func (i Installed) complete() error {
	info, err := os.Lstat(i.Path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", i.Path)
	}
	for _, file := range i.Receipt.Files {
		if file.Name == i.Receipt.Executable && file.Size != info.Size() {
			return fmt.Errorf("%s has %d bytes, its receipt says %d: %w", i.Path, info.Size(), file.Size, errChanged)
		}
	}
	return nil
}

// LookPath gives the path of the executable that satisfies a reference: the
// greatest installed version. A digest in the reference must be that of the
// index or manifest that was installed.
//
// It knows only what this package installed, completely; the runner also takes
// what others put there, see [Folder.RunnerTakes]. Without a match the error is
// [ErrNotFound] (not-installed).
func (f *Folder) LookPath(ref Reference) (string, error) {
	found, err := f.find(ref, "")
	return found.Path, failed("looking for", ref.String(), err)
}

// Find is [Folder.LookPath] with everything that is known.
func (f *Folder) Find(ref Reference) (Installed, error) {
	found, err := f.find(ref, "")
	return found, failed("looking for", ref.String(), err)
}

func (f *Folder) find(ref Reference, as string) (Installed, error) {
	fitting, broken, err := f.fitting(ref, as)
	if err != nil {
		return Installed{}, err
	}
	if len(fitting) > 0 {
		return fitting[len(fitting)-1], nil
	}
	if broken != nil {
		return Installed{}, fmt.Errorf("%w as it was: %s", errNotInstalled, broken.Error())
	}
	return Installed{}, fmt.Errorf("%w in %s", errNotInstalled, f.Dir())
}

// fitting gives all complete versions that satisfy a reference, smallest first, and
// why the greatest of those that are not complete is not.
func (f *Folder) fitting(ref Reference, as string) (fitting []Installed, broken, err error) {
	plugin, err := storePlugin(ref, as)
	if err != nil {
		return nil, nil, err
	}
	entries, err := f.store.Versions(plugin)
	if err != nil {
		return nil, nil, err
	}
	constraint, constrained := ref.Constraint()
	for _, entry := range entries {
		installed, err := readInstalled(entry)
		if err != nil || installed.Foreign {
			continue
		}
		if constrained && !constraint.Match(installed.Receipt.Version) {
			continue
		}
		if ref.Pinned() && ref.Digest() != installed.Receipt.Index && ref.Digest() != installed.Receipt.Manifest {
			continue
		}
		if err := installed.complete(); err != nil {
			broken = err
			continue
		}
		fitting = append(fitting, installed)
	}
	return fitting, broken, nil
}

func readInstalled(entry store.Entry) (Installed, error) {
	if entry.Receipt == nil {
		return foreign(entry), nil
	}
	receipt, err := decodeReceipt(entry.Receipt)
	if err == nil {
		err = receipt.belongs(entry)
	}
	if err != nil {
		return Installed{}, fmt.Errorf("%s: %w", entry.Dir, err)
	}
	return newInstalled(entry.Dir, receipt, false), nil
}

// readOrForeign takes a version whose receipt cannot be read for somebody else's.
func readOrForeign(entry store.Entry) Installed {
	installed, err := readInstalled(entry)
	if err != nil {
		return foreign(entry)
	}
	return installed
}

func foreign(entry store.Entry) Installed {
	name := "plugin"
	if runtime.GOOS == "windows" {
		name = "plugin.exe"
	}
	return Installed{
		Dir: entry.Dir, Path: filepath.Join(entry.Dir, name), Foreign: true,
		Receipt: Receipt{Name: entry.Plugin.Name(), Version: entry.Version},
	}
}

// List gives everything installed, by name and version. A receipt that cannot be
// read makes its version foreign.
func (f *Folder) List() ([]Installed, error) {
	entries, err := f.store.All()
	if err != nil {
		return nil, err
	}
	list := make([]Installed, 0, len(entries))
	for _, entry := range entries {
		list = append(list, readOrForeign(entry))
	}
	return list, nil
}

// InstalledAt gives the installed version that a path belongs to: the folder of
// the version, or a file in it, wherever that is.
func InstalledAt(path string) (Installed, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return Installed{}, err
	}
	for range maxDepthOfFiles {
		content, err := store.ReadReceipt(dir)
		if err == nil {
			receipt, err := decodeReceipt(content)
			return newInstalled(dir, receipt, false), failed("looking at", path, err)
		}
		dir = filepath.Dir(dir)
	}
	return Installed{}, failed("looking at", path, fmt.Errorf("%w: no receipt there", errNotInstalled))
}

// maxDepthOfFiles is how far above a file the receipt of its plugin is looked for.
const maxDepthOfFiles = 8

// Verify reads an installed version again and compares every file with the
// receipt: content, mode, and that there is nothing else. Differences match
// [ErrDiffers] (changed); a version without a receipt is [ErrDiffers] (foreign). It does not ask who
// signed; the receipt says who did.
func (i Installed) Verify(ctx context.Context) error {
	if i.Foreign {
		return failed("verifying", i.Receipt.Name+":"+i.Receipt.Version.String(), i.whyForeign())
	}
	for attempt := 1; ; attempt++ {
		replaced, err := i.verify(ctx)
		if err == nil || !replaced || attempt == maxReplaced {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(replacedPause):
		}
	}
}

// whyForeign tells a version without a receipt from one whose receipt was altered.
func (i Installed) whyForeign() error {
	_, err := store.ReadReceipt(i.Dir)
	if errors.Is(err, errNotInstalled) || errors.Is(err, fs.ErrNotExist) {
		return errForeign
	}
	return fmt.Errorf("%w: it has a receipt that is not its own", errChanged)
}

// maxReplaced is how often a version is read because it was installed anew
// meanwhile, or is away while it is.
const (
	maxReplaced   = 10
	replacedPause = 20 * time.Millisecond
)

// verify reads the version once, and reports whether another folder is in its
// place afterwards.
func (i Installed) verify(ctx context.Context) (replaced bool, err error) {
	root, before, err := openVersion(i.Dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist), err
	}
	defer func() { _ = root.Close() }()
	if err := i.compare(ctx, root); err != nil {
		after, statErr := os.Stat(i.Dir)
		return statErr == nil && !os.SameFile(before, after), err
	}
	return false, nil
}

// openVersion opens the folder of a version.
func openVersion(dir string) (root *os.Root, info fs.FileInfo, err error) {
	err = durable.WhileInUse(func() error {
		root, err = os.OpenRoot(dir)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if info, err = root.Stat("."); err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	return root, info, nil
}

func (i Installed) compare(ctx context.Context, root *os.Root) error {
	expected := map[string]bool{store.ReceiptName: true}
	var problems []error
	for _, file := range i.Receipt.Files {
		expected[file.Name] = true
		if err := verifyFile(ctx, root, file); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", filepath.Join(i.Dir, file.Name), err))
		}
	}
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !expected[name] {
			problems = append(problems, fmt.Errorf("%s: %w: it was not installed", filepath.Join(i.Dir, name), errChanged))
		}
		return err
	})
	return errors.Join(append(problems, err)...)
}

func verifyFile(ctx context.Context, root *os.Root, file ReceiptFile) (err error) {
	info, err := root.Lstat(file.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: it is missing", errChanged)
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: it is no longer a regular file", errChanged)
	}
	if mode := fmt.Sprintf("%04o", info.Mode().Perm()); mode != file.Mode && runtime.GOOS != "windows" {
		return fmt.Errorf("%w: mode is %s, was %s", errChanged, mode, file.Mode)
	}
	var content *os.File
	err = durable.WhileInUse(func() error {
		content, err = root.Open(file.Name)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	got, err := digestOf(ctx, content, file.Digest.Algorithm())
	if err != nil {
		return err
	}
	if got != file.Digest {
		return fmt.Errorf("%w: digest is %s, was %s", errChanged, got, file.Digest)
	}
	return nil
}

func digestOf(ctx context.Context, r io.Reader, algorithm digest.Algorithm) (digest.Digest, error) {
	digester := algorithm.Digester()
	buffer := make([]byte, 256<<10)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := r.Read(buffer)
		_, _ = digester.Hash().Write(buffer[:n]) // a hash never fails
		if errors.Is(err, io.EOF) {
			return digester.Digest(), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// Uninstall removes one installed version of a plugin: that which the reference
// stands for, as [Folder.Find] finds it. A version that something else put there
// is removed if the reference names exactly that one. Without a match the error is
// [ErrNotFound] (not-installed).
func (f *Folder) Uninstall(ctx context.Context, ref Reference) (Installed, error) {
	found, err := f.uninstall(ctx, ref)
	return found, failed("uninstalling", ref.String(), err)
}

func (f *Folder) uninstall(ctx context.Context, ref Reference) (_ Installed, err error) {
	plugin, err := storePlugin(ref, "")
	if err != nil {
		return Installed{}, err
	}
	lock, err := f.store.Lock(ctx, plugin)
	if err != nil {
		return Installed{}, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	found, err := f.find(ref, "")
	if errors.Is(err, errNotInstalled) && !ref.Pinned() {
		found, err = f.findForeign(plugin, ref)
	}
	if err != nil {
		return Installed{}, err
	}
	return found, f.store.Remove(lock, found.Receipt.Version)
}

// findForeign finds the version that a reference names exactly, whatever it is.
func (f *Folder) findForeign(plugin store.Plugin, ref Reference) (Installed, error) {
	constraint, _ := ref.Constraint()
	exact, ok := constraint.Exact()
	if !ok {
		err := fmt.Errorf("%w in %s", errNotInstalled, f.Dir())
		if taken, found := f.runnerTakes(ref); found == nil && taken.Foreign {
			err = fmt.Errorf("%w; to remove %s, which something else installed, name that version", err, taken.Receipt.Version)
		}
		return Installed{}, err
	}
	entry, err := f.store.Version(plugin, exact)
	if err != nil {
		return Installed{}, err
	}
	return Installed{Dir: entry.Dir, Foreign: true, Receipt: Receipt{Name: plugin.Name(), Version: exact}}, nil
}
