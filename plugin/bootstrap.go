package plugin

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	fleetingplugin "gitlab.com/gitlab-org/fleeting/fleeting/plugin"
	"golang.org/x/mod/module"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
)

// modesMatter says that permissions are what other users are let in by. On Windows,
// folders inherit who may read them.
const modesMatter = runtime.GOOS != "windows"

// ErrBootstrap says that the plugin cannot be put where it was asked to be:
// the repository's name cannot be a folder, the plugin folder is missing, or
// what is in it stands in the way.
var ErrBootstrap = errors.New("cannot bootstrap")

// BootstrapOptions says what is copied and where to. There are no defaults.
type BootstrapOptions struct {
	// Repository is the name that the runner's configuration uses, such as
	// "registry.example.com/plugins/openstack". A tag or digest is taken off; a
	// name without a registry gets that of GitLab, as the runner does it.
	Repository string
	// Source is the folder of the executable. All files in it are copied.
	Source string
	// Target is the plugin folder, which must exist.
	Target string
	// Version is that of the executable. It names the folder.
	Version fleetingplugin.VersionInfo
	// PackageVersion is that of the image, from FLEETING_PLUGIN_PKG_VERSION. It
	// names the folder when the executable has no version of three parts.
	PackageVersion string
}

// Bootstrapped says what [Bootstrap] found and did.
type Bootstrapped struct {
	// Dir is where the plugin is: Target/REPOSITORY/VERSION.
	Dir string
	// Written are the names of the files that were missing or different.
	Written []string
	// Repaired says that the folder was there and was not complete.
	Repaired bool
	// Warning is a sentence about versions that do not agree, or empty.
	Warning string
}

// Bootstrap copies the plugin into a plugin folder, under the name and version
// by which the runner looks it up. Folders and names are those of fleeting's
// library; unlike it, Bootstrap makes folders that every user can read, never
// leaves a folder with a part of the files under a version's name, and compares
// a version that is there with what it ought to be, file by file, and repairs
// it. Several may run at once in one folder, also while a runner starts the
// plugin from it.
//
// The errors are of [ErrBootstrap] or of the file system.
func Bootstrap(opts BootstrapOptions) (Bootstrapped, error) {
	repository, err := repositoryFolder(opts.Repository)
	if err != nil {
		return Bootstrapped{}, err
	}
	version, err := module.EscapeVersion(folderVersion(opts.Version, opts.PackageVersion))
	if err != nil {
		return Bootstrapped{}, fmt.Errorf("%w: version: %w", ErrBootstrap, err)
	}
	if info, err := os.Stat(opts.Target); err != nil || !info.IsDir() {
		return Bootstrapped{}, fmt.Errorf("%w: plugin folder %s: not a folder that is there; mount a volume there or set FLEETING_PLUGIN_PATH", ErrBootstrap, opts.Target)
	}
	done := Bootstrapped{
		Dir:     filepath.Join(opts.Target, filepath.FromSlash(repository), version),
		Warning: versionWarning(opts.Version.Version, opts.PackageVersion),
	}
	files, err := listFiles(opts.Source)
	if err != nil {
		return done, fmt.Errorf("reading the plugin's folder: %w", err)
	}
	done.Written, done.Repaired, err = place(files, opts.Target, done.Dir)
	if err != nil {
		return done, fmt.Errorf("bootstrapping to %s: %w", done.Dir, err)
	}
	return done, nil
}

// Where a name without a registry, and one without a path, come from.
const (
	gitlabRegistry = "registry.gitlab.com"
	gitlabPlugins  = "gitlab-org/fleeting/plugins"
)

// repositoryFolder turns the name of a repository into a relative folder.
func repositoryFolder(name string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("%w: no repository given, for instance: bootstrap registry.example.com/plugins/openstack", ErrBootstrap)
	}
	if strings.HasPrefix(name, "-") || strings.Contains(name, "/-") {
		return "", fmt.Errorf("%w: repository %s: no part of a name begins with a dash", ErrBootstrap, name)
	}
	name, _, _ = strings.Cut(name, "@")
	if base, _, tagged := strings.Cut(path.Base(name), ":"); tagged {
		name = path.Join(path.Dir(name), base)
	}
	host, _, hasPath := strings.Cut(name, "/")
	switch {
	case !hasPath:
		name = path.Join(gitlabRegistry, gitlabPlugins, name)
	case !strings.Contains(host, "."):
		name = path.Join(gitlabRegistry, name)
	}
	escaped, err := module.EscapePath(name)
	if err != nil && strings.Contains(strings.SplitN(name, "/", 2)[0], ":") {
		host, _, _ := strings.Cut(name, ":")
		_, rest, _ := strings.Cut(name, "/")
		return "", fmt.Errorf("%w: repository %s: the runner looks up no plugin under a registry with a port; use a name without one here and in config.toml, for instance %s/%s", ErrBootstrap, name, host, rest)
	}
	if err != nil {
		return "", fmt.Errorf("%w: repository %s: %w", ErrBootstrap, name, err)
	}
	return escaped, nil
}

// folderVersion is the executable's version, unless that is none.
func folderVersion(v fleetingplugin.VersionInfo, packaged string) string {
	version := strings.TrimPrefix(v.Version, "v")
	if strings.Count(version, ".") >= 2 {
		return version
	}
	version = cmp.Or(packaged, version)
	if version != "" && version != "dev" {
		return version
	}
	built, err := time.Parse(time.RFC3339, v.BuiltAt)
	if err != nil {
		built = time.Time{} // the library's value for builds that do not say
	}
	return strings.TrimPrefix(module.PseudoVersion("v0", "", built, v.Revision), "v")
}

// pseudoVersion is a version that Go made up, such as v0.0.0-20260102030405-….
var pseudoVersion = regexp.MustCompile(`^v?\d+\.\d+\.\d+(-[^.]+\.0)?-\d{14}-`)

// versionWarning compares the versions of image and executable. A development
// image may hold any executable with a version that Go made up.
func versionWarning(version, packaged string) string {
	switch {
	case packaged == "", strings.HasPrefix(version, packaged), packaged == "dev" && pseudoVersion.MatchString(version):
		return ""
	default:
		return fmt.Sprintf("the image is of version %q and the executable of version %q: the runner finds the latter", packaged, version)
	}
}

const (
	// stagePrefix begins the names of folders in the making. The runner takes
	// none for a plugin: a version does not begin so.
	stagePrefix = ".bootstrap-"
	// stageLife is how long a folder in the making may be left alone before it
	// is taken for one whose process was killed.
	stageLife = time.Hour

	dirMode        = 0o755
	executableMode = 0o755
	fileMode       = 0o644
)

// file is one that is to be copied.
type file struct {
	path string
	mode fs.FileMode
	size int64
}

func (f file) name() string { return filepath.Base(f.path) }

// listFiles returns the files of the plugin's folder. Links count as what they
// point to; a folder in it is refused, because the runner knows flat ones only.
func listFiles(dir string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%w: %s is no regular file; bootstrap runs from the plugin's image, where the plugin's files are alone in a folder", ErrBootstrap, path)
		}
		mode := fs.FileMode(fileMode)
		if info.Mode().Perm()&0o111 != 0 {
			mode = executableMode
		}
		files = append(files, file{path: path, mode: mode, size: info.Size()})
	}
	return files, nil
}

// place makes dir hold the files, and says which ones it wrote.
func place(files []file, target, dir string) (written []string, repaired bool, err error) {
	missing, repaired, err := lacking(files, target, dir)
	if err != nil || len(missing) == 0 {
		return nil, false, err
	}
	stage, err := os.MkdirTemp(target, stagePrefix)
	if err != nil {
		return nil, repaired, err
	}
	defer os.RemoveAll(stage) //nolint:errcheck // it is gone already when all went well; a later bootstrap sweeps what stays
	if err := sweep(target, stage); err != nil {
		return nil, repaired, err
	}
	for _, f := range missing {
		if err := stageFile(f, stage); err != nil {
			return nil, repaired, err
		}
		written = append(written, f.name())
	}
	if err := errors.Join(openToAll(stage, target), durable.MkdirAll(filepath.Dir(dir), dirMode)); err != nil {
		return nil, repaired, err
	}
	if err := commit(missing, stage, dir); err != nil {
		return nil, repaired, err
	}
	return written, repaired, openToAll(dir, target)
}

// lacking returns the files that dir lacks, and whether there is such a folder.
func lacking(files []file, target, dir string) (missing []file, exists bool, err error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return files, false, nil
	case err != nil:
		return nil, false, err
	case !info.IsDir():
		return nil, true, fmt.Errorf("%w: it is no folder", ErrBootstrap)
	}
	if missing, err = different(files, dir); err != nil {
		return nil, true, err
	}
	return missing, true, openToAll(dir, target)
}

// replaceFile moves a staged file onto its old one. Windows replaces no file that
// a process runs, but lets it make way, into the folder in the making: a later
// bootstrap removes it.
func replaceFile(staged, path string) error {
	err := os.Rename(staged, path)
	if !durable.InUse(err) {
		return err
	}
	aside := staged + ".old"
	if err := durable.Rename(path, aside); err != nil {
		return err
	}
	if err := durable.Rename(staged, path); err != nil {
		return errors.Join(err, durable.Rename(aside, path))
	}
	return nil
}

// commit moves what is staged to its place: the folder as a whole, or each file
// onto its old one, which a process may be running.
func commit(files []file, stage, dir string) error {
	if err := durable.SyncDir(stage); err != nil {
		return err
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		err := os.Rename(stage, dir)
		if err == nil {
			return durable.SyncDir(filepath.Dir(dir))
		}
		// Another bootstrap may have been faster.
		if info, statErr := os.Lstat(dir); statErr != nil || !info.IsDir() {
			return err
		}
	}
	for _, f := range files {
		if err := replaceFile(filepath.Join(stage, f.name()), filepath.Join(dir, f.name())); err != nil {
			return err
		}
	}
	return durable.SyncDir(dir)
}

// different returns those of the files that dir does not hold as they must be.
func different(files []file, dir string) ([]file, error) {
	var missing []file
	for _, f := range files {
		same, err := f.sameAs(filepath.Join(dir, f.name()))
		if err != nil {
			return nil, err
		}
		if !same {
			missing = append(missing, f)
		}
	}
	return missing, nil
}

// sameAs compares mode and content with the file at path, if there is one.
func (f file) sameAs(path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, nil
	case info.Size() != f.size, info.Mode().Perm()&f.mode != f.mode && modesMatter:
		return false, nil
	}
	return sameContent(f.path, path)
}

func sameContent(a, b string) (same bool, err error) {
	left, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer func() { _ = left.Close() }() // only read
	right, err := os.Open(b)
	if err != nil {
		return false, err
	}
	defer func() { _ = right.Close() }() // only read
	const chunk = 256 << 10
	x, y := make([]byte, chunk), make([]byte, chunk)
	for {
		n, err := io.ReadFull(left, x)
		m, other := io.ReadFull(right, y)
		if !bytes.Equal(x[:n], y[:m]) {
			return false, nil
		}
		if ended(err) || ended(other) {
			return ended(err) && ended(other), nil
		}
		if err := errors.Join(err, other); err != nil {
			return false, err
		}
	}
}

func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// stageFile copies a file into the folder in the making, and onto the disk.
func stageFile(f file, stage string) error {
	source, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // only read
	target, err := os.OpenFile(filepath.Join(stage, f.name()), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	size, err := io.Copy(target, source)
	if err == nil && size != f.size {
		err = fmt.Errorf("copied %d bytes of %d", size, f.size)
	}
	if err == nil {
		err = target.Sync()
	}
	if err := errors.Join(err, target.Close()); err != nil {
		return fmt.Errorf("copying %s: %w", f.name(), err)
	}
	return os.Chmod(target.Name(), f.mode) // not the umask's business
}

// openToAll lets everybody read dir and the folders above it, up to target: the
// runner may be another user. Folders that are open already may belong to
// another user too, and are left alone.
func openToAll(dir, target string) error {
	for dir := filepath.Clean(dir); dir != filepath.Clean(target); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		mode := info.Mode()
		if !modesMatter || mode.Perm()&dirMode == dirMode {
			continue
		}
		// The setgid bit of volumes with an fsGroup stays.
		if err := os.Chmod(dir, mode.Perm()|dirMode|mode&fs.ModeSetgid); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes folders in the making that were left behind, by the age that
// the file system gives them beside the new one.
func sweep(target, stage string) error {
	now, err := os.Stat(stage)
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(target, stagePrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range old {
		info, err := os.Lstat(dir)
		if err != nil || now.ModTime().Sub(info.ModTime()) < stageLife {
			continue
		}
		if err := os.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}
