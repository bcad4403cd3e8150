package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	fleetingplugin "gitlab.com/gitlab-org/fleeting/fleeting/plugin"
	"golang.org/x/mod/module"
)

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
