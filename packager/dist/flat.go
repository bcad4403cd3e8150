package dist

import (
	"debug/buildinfo"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// flatName is a name that ends in a platform, as GitLab's Makefiles, gox and
// goreleaser write them: plugin-linux-amd64, plugin_windows_amd64_v1.exe.
var flatName = regexp.MustCompile(`^(.*?)-?\b(darwin|freebsd|linux|windows|zos)-([a-z0-9]+)(?:-v?([0-9])(?:\.[0-9])?)?(?:\.exe)?$`)

// flatSpelling makes the spellings of a name alike.
var flatSpelling = strings.NewReplacer("x86_64", "amd64", "_", "-") //nolint:gochecknoglobals // a constant

// flat is an entry of a folder that is named for its platform.
type flat struct {
	path, plugin, system, arch string
	folder                     bool
}

// parseFlat reads such a name. It reports false for one that does not end in a
// platform.
func parseFlat(dir string, e fs.DirEntry) (flat, bool) {
	m := flatName.FindStringSubmatch(flatSpelling.Replace(strings.ToLower(e.Name())))
	if m == nil {
		return flat{}, false
	}
	f := flat{path: filepath.Join(dir, e.Name()), plugin: m[1], system: m[2], arch: m[3], folder: e.IsDir()}
	switch f.arch {
	case "aarch64":
		f.arch = "arm64"
	case "i386", "x86":
		f.arch = "386"
	case "arm":
		f.arch = "arm" + armVersion(f.path, m[4])
	}
	if f.arch == "amd64" && m[4] > "1" {
		f.arch += "v" + m[4]
	}
	return f, true
}

// armVersion is the version of ARM that a name says, else the one that the
// executable was built for, "" if neither tells.
func armVersion(path, named string) string {
	if named == "" {
		if info, err := buildinfo.ReadFile(path); err == nil {
			named, _, _ = strings.Cut(settingOf(info, "GOARM"), ",")
		}
	}
	if named == "" {
		return ""
	}
	return "v" + named
}

// addFlat takes the executables whose names end in a platform, which must be those
// of one plugin. Executables with other names are left out, with a warning.
func (d *Dist) addFlat(entries []fs.DirEntry) error {
	known := knownPlatforms()
	var found []flat
	var left []string
	for _, e := range entries {
		f, ok := parseFlat(d.dir, e)
		switch {
		case ok && (slices.Contains(known.archs(f.system), f.arch) || strings.HasPrefix(f.arch, "arm") || strings.HasPrefix(f.arch, "amd64")):
			found = append(found, f)
		case runs(d.dir, e):
			left = append(left, filepath.Join(d.dir, e.Name()))
		}
	}
	if len(found) == 0 {
		return nil
	}
	var plugins []string
	for _, f := range found {
		plugins = append(plugins, f.plugin)
	}
	slices.Sort(plugins)
	if plugins = slices.Compact(plugins); len(plugins) > 1 {
		return &InputError{
			Path: d.dir, Problem: "holds executables of several names: " + strings.Join(plugins, ", "),
			Remedy: "name those of one plugin: --platform " + found[0].system + "/" + found[0].arch + "=" + found[0].path + ", for each platform",
		}
	}
	for _, path := range left {
		d.warnings = append(d.warnings, Warning{path, "left out: its name does not end in -os-arch"})
	}
	for _, f := range found {
		if err := d.addFlatOne(known, f); err != nil {
			return err
		}
	}
	return nil
}

// runs reports whether an entry of a folder looks like an executable: by its mode or
// its name, and on a system without modes by its content.
func runs(dir string, e fs.DirEntry) bool {
	info, err := e.Info()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	return info.Mode().Perm()&0o111 != 0 || strings.HasSuffix(strings.ToLower(e.Name()), ".exe") ||
		!modes && looksExecutable(filepath.Join(dir, e.Name()))
}

func (d *Dist) addFlatOne(known platformSet, f flat) error {
	p, err := artifact.ParsePlatform(f.system + "/" + f.arch)
	if err != nil || !known.has(p) {
		refused := known.refuse(f.path, f.system, f.arch)
		if e, ok := refused.(*InputError); ok && f.arch == "arm" { //nolint:errorlint // made just now
			e.Remedy = "rename it to end in -" + f.system + "-armv5, -armv6 or -armv7, whichever GOARM it was built with"
		}
		return refused
	}
	path := f.path
	if f.folder {
		if path, err = onlyExecutable(f.path, p); err != nil {
			return err
		}
	}
	var files []File
	if path == "" {
		files, err = collect(f.path, p)
	} else {
		files, err = single(path, p)
	}
	if err != nil {
		return err
	}
	d.inputs = append(d.inputs, Input{platform: p, files: files, source: f.path})
	return nil
}

// onlyExecutable finds the executable in a folder that is named for a platform:
// the only one, as goreleaser writes it, or "" for a plugin with companions.
func onlyExecutable(dir string, p artifact.Platform) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", &InputError{Path: dir, Problem: "cannot be read", Err: err}
	}
	var executables []string
	for _, e := range entries {
		if e.Name() == p.Executable() {
			return "", nil
		}
		if runs(dir, e) {
			executables = append(executables, filepath.Join(dir, e.Name()))
		}
	}
	if len(executables) != 1 {
		return "", &InputError{
			Path: dir, Problem: fmt.Sprintf("has %d executables and no file %s", len(executables), p.Executable()),
			Remedy: "rename the plugin's executable to " + p.Executable(),
		}
	}
	return executables[0], nil
}

// nothing says that a folder holds no plugin, and what it holds.
func nothing(dir string, entries []fs.DirEntry) error {
	const most = 5
	var seen []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += string(filepath.Separator)
		}
		seen = append(seen, name)
	}
	e := &InputError{
		Path: dir, Problem: "holds no plugin",
		Remedy: "build executables to " + filepath.Join(dir, "linux", "amd64", "plugin") + " or to " + filepath.Join(dir, "plugin-linux-amd64") +
			", for each platform; or name each executable: --platform linux/amd64=PATH",
	}
	switch n := len(seen) - most; {
	case n > 0:
		e.Problem += fmt.Sprintf(": there are %s and %d more", strings.Join(seen[:most], ", "), n)
	case len(seen) > 0:
		e.Problem += ": there is only " + strings.Join(seen, ", ")
	default:
		e.Problem += ": it is empty"
	}
	return e
}
