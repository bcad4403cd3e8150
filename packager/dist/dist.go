// Package dist finds the executables of a plugin in a folder, one for each platform,
// with the files that go with them, and checks that they are what they will be
// published as. It packages and publishes nothing.
package dist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// Options change where [Scan] looks. The zero value reads the folder.
type Options struct {
	// Platforms maps platforms ("linux/amd64", "linux/arm/v7") to an executable
	// or to a folder that holds "plugin" and its companions. If it is not
	// empty, nothing else is read.
	Platforms map[string]string
	// GoreleaserID chooses among several builds in goreleaser's artifacts.json.
	GoreleaserID string
	// Include are the names of companion files that are published although they
	// look private: keys, credentials, hidden files, leftovers, sources.
	Include []string
	// Executables are the names of companion files that are executable, if it is not
	// nil; no other is then. Nil leaves it to the modes of the files. On Windows,
	// where files have none, nil refuses companions for other systems. Files for
	// Windows are executable by the end of their name in any case.
	Executables []string
}

// Dist is a checked set of executables, one for each platform. Only [Scan]
// makes one.
type Dist struct {
	dir      string
	inputs   []Input
	warnings []Warning
	sums     sums
}

// Dir returns the folder that was scanned.
func (d *Dist) Dir() string { return d.dir }

// Inputs returns what was found, sorted by platform.
func (d *Dist) Inputs() []Input { return slices.Clone(d.inputs) }

// Warnings returns what the publisher should look at.
func (d *Dist) Warnings() []Warning { return slices.Clone(d.warnings) }

// Revision returns the commit that the executables were built from by their build
// information, "" if it names none.
func (d *Dist) Revision() string {
	for _, in := range d.inputs {
		if in.info != nil && settingOf(in.info, "vcs.revision") != "" && settingOf(in.info, "vcs.modified") != "true" {
			return settingOf(in.info, "vcs.revision")
		}
	}
	return ""
}

// Input is what is packaged for one platform.
type Input struct {
	platform artifact.Platform
	// files are sorted by name; one of them is the executable.
	files []File
	// info is Go's build information; nil where there is none.
	info *debug.BuildInfo
	// source is where the executable was found, for messages.
	source string
}

// Platform returns the platform; its String is "os/arch[/variant]".
func (in Input) Platform() artifact.Platform { return in.platform }

// Files returns the executable and its companions, sorted by name.
func (in Input) Files() []File { return slices.Clone(in.files) }

// Executable returns the plugin itself.
func (in Input) Executable() File {
	i := slices.IndexFunc(in.files, func(f File) bool { return f.name == in.platform.Executable() })
	return in.files[i]
}

// Size returns the size of all files together, in bytes.
func (in Input) Size() int64 {
	var n int64
	for _, f := range in.files {
		n += f.size
	}
	return n
}

// has says whether a file of the name goes with the executable.
func (in Input) has(name string) bool {
	return slices.ContainsFunc(in.files, func(f File) bool { return f.name == name })
}

// File is one regular file of a platform.
type File struct {
	// name in the plugin's folder, path on disk.
	name, path string
	size       int64
	executable bool
	// found is the state in which the file was checked.
	found fs.FileInfo
}

// Name returns the name of the file in the plugin's folder.
func (f File) Name() string { return f.name }

// Path returns where the file is.
func (f File) Path() string { return f.path }

// Size returns the size in bytes.
func (f File) Size() int64 { return f.size }

// Executable reports whether the file may be started.
func (f File) Executable() bool { return f.executable }

// Scan finds the executables below dir and checks them. It understands four
// forms: goreleaser's artifacts.json in dir, folders "os/arch[variant]" with
// the executable "plugin" ("plugin.exe" on Windows), executables that are named
// "NAME-os-arch", and the explicit list of [Options]. Every fault is reported, not
// only the first: the error joins one [*InputError] for each.
func Scan(ctx context.Context, dir string, opts Options) (*Dist, error) {
	d := &Dist{dir: dir}
	var err error
	switch {
	case len(opts.Platforms) > 0:
		err = d.addExplicit(opts.Platforms)
	case exists(filepath.Join(dir, goreleaserFile)):
		err = d.addGoreleaser(filepath.Join(dir, goreleaserFile), opts.GoreleaserID)
	default:
		err = d.addFolders()
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(d.inputs, func(a, b Input) int { return a.platform.Compare(b.platform) })
	var problems []error
	for i := range d.inputs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if i > 0 && d.inputs[i].platform == d.inputs[i-1].platform {
			problems = append(problems, &InputError{
				Path: d.inputs[i].source, Problem: fmt.Sprintf("%s is also in %s", d.inputs[i].platform, d.inputs[i-1].source),
				Remedy: "keep one of the two",
			})
			continue
		}
		warnings, err := d.inputs[i].check()
		d.warnings = append(d.warnings, warnings...)
		problems = append(problems, err, refusePrivate(d.inputs[i], opts.Include), d.inputs[i].settleModes(opts.Executables, modes))
	}
	problems = append(problems, d.needFiles(opts.Include, "included", "--include"), d.needFiles(opts.Executables, "executable", "--executable"))
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	warnings, err := d.oneBuild()
	d.warnings = append(d.warnings, warnings...)
	return d, err
}

// needFiles refuses names that no platform's folder has. The empty name stands in
// a list that is empty on purpose.
func (d *Dist) needFiles(names []string, what, flag string) error {
	var problems []error
	for _, name := range names {
		if name != "" && !slices.ContainsFunc(d.inputs, func(in Input) bool { return in.has(name) }) {
			problems = append(problems, &InputError{
				Path: name, Problem: "is to be " + what + " and is in no platform's folder", Remedy: "give " + flag + " the name of a file beside an executable",
			})
		}
	}
	return errors.Join(problems...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// addFolders reads dir/os/arch[variant], or executables in dir that are named for
// their platform.
func (d *Dist) addFolders() error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return &InputError{Path: d.dir, Problem: "cannot be read", Err: errors.Unwrap(err), Remedy: "name the folder that holds os/arch/plugin"}
	}
	known := knownPlatforms()
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return known.system(e.Name()) }) {
		if err := d.addFlat(entries); err != nil || len(d.inputs) > 0 {
			return err
		}
	}
	var problems []error
	for _, system := range entries {
		dir := filepath.Join(d.dir, system.Name())
		switch {
		case system.Type()&fs.ModeSymlink != 0 && known.system(system.Name()):
			problems = append(problems, linked(dir))
			continue
		case !system.IsDir():
			continue // checksum files and the like lie beside the folders
		case !known.system(system.Name()):
			problems = append(problems, &InputError{
				Path: dir, Problem: "is not the name of an operating system that plugins are published for",
				Remedy: "folders are named " + strings.Join(known.systems(), ", ") + "; move others out of the way, or name platforms with --platform os/arch=PATH",
			})
			continue
		}
		archs, err := os.ReadDir(dir)
		if err != nil {
			return &InputError{Path: dir, Problem: "cannot be read", Err: err}
		}
		for _, arch := range archs {
			problems = append(problems, d.addFolder(known, system.Name(), arch))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if len(d.inputs) == 0 {
		return nothing(d.dir, entries)
	}
	return nil
}

func linked(path string) error {
	return &InputError{Path: path, Problem: "is a symbolic link", Remedy: "copy the folder that it points to"}
}

func (d *Dist) addFolder(known platformSet, system string, entry os.DirEntry) error {
	path := filepath.Join(d.dir, system, entry.Name())
	if entry.Type()&fs.ModeSymlink != 0 {
		return linked(path)
	}
	if !entry.IsDir() {
		return &InputError{
			Path: path, Problem: "is not a folder",
			Remedy: "put executables into a folder for their architecture, such as " + filepath.Join(system, "amd64", "plugin"),
		}
	}
	p, err := artifact.ParsePlatform(system + "/" + entry.Name())
	if err != nil || !known.has(p) || p.Dir() != system+"/"+entry.Name() {
		return known.refuse(path, system, entry.Name())
	}
	files, err := collect(path, p)
	if err != nil {
		return err
	}
	d.inputs = append(d.inputs, Input{platform: p, files: files, source: path})
	return nil
}

// addExplicit takes the executables that the caller names.
func (d *Dist) addExplicit(platforms map[string]string) error {
	known := knownPlatforms()
	var problems []error
	for name, path := range platforms {
		p, err := artifact.ParsePlatform(name)
		if err != nil {
			problems = append(problems, &InputError{Path: name, Problem: "is not a platform", Remedy: "write os/arch or os/arch/variant, such as linux/arm/v7", Err: err})
			continue
		}
		if !known.has(p) {
			system, arch, _ := strings.Cut(p.Dir(), "/")
			problems = append(problems, known.refuse(name, system, arch))
			continue
		}
		in := Input{platform: p, source: path}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			err = &InputError{Path: path, Problem: "cannot be read", Err: errors.Unwrap(err), Remedy: "check the path after --platform " + name + "="}
		case info.IsDir():
			in.files, err = collect(path, p)
		default:
			in.files, err = single(path, p)
		}
		problems = append(problems, err)
		d.inputs = append(d.inputs, in)
	}
	return errors.Join(problems...)
}

// copyBuffer is how much of a file is read at a time.
const copyBuffer = 128 << 10
