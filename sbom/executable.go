package sbom

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
)

// ErrNoBuildInfo is returned for an executable that carries no Go build
// information: it was not built by Go with modules, or the information was
// stripped by another tool.
var ErrNoBuildInfo = errors.New("no Go build information")

// stdlib is how vulnerability databases name the standard library as a module.
const stdlib = "stdlib"

// devel is what the linker records for a main module whose version it does not
// know.
const devel = "(devel)"

// Module is one Go module as the linker recorded it.
type Module struct {
	// Path and Version of the code that was built: of the replacement, if the
	// module was replaced. Version is empty for code from a local folder.
	Path, Version string
	// Sum is the "h1:" checksum of go.sum, empty where there is none.
	Sum string
	// Replaces is "path@version" of the module that the code stands in for, or
	// empty.
	Replaces string
	// License is an SPDX expression, empty if unknown.
	License string
}

func (m Module) compare(o Module) int {
	return cmp.Or(cmp.Compare(m.Path, o.Path), cmp.Compare(m.Version, o.Version),
		cmp.Compare(m.Sum, o.Sum), cmp.Compare(m.Replaces, o.Replaces))
}

// Setting is one build setting, such as CGO_ENABLED or vcs.revision.
type Setting struct{ Key, Value string }

// File is a file that is delivered together with an executable.
type File struct {
	// Name is relative to the executable's folder.
	Name string
	// SHA256 is the hexadecimal digest of its content.
	SHA256 string
}

// Executable is what is known about one file.
type Executable struct {
	// Name of the file, without folders.
	Name string
	// Platform in OCI's notation, for instance "linux/arm/v7"; may be empty.
	Platform string
	// SHA256 is the hexadecimal digest of the file.
	SHA256 string
	// GoVersion as recorded, for instance "go1.26.0"; empty if the file has no
	// build information.
	GoVersion string
	// Package is the import path of the main package.
	Package string
	// Main is the module that holds the main package.
	Main Module
	// Modules are all other modules that were linked in, sorted by path.
	Modules []Module
	// Settings are the build settings in the linker's order.
	Settings []Setting
	// Files are delivered beside the executable.
	Files []File
}

// Setting returns the value of a build setting, or "".
func (e Executable) Setting(key string) string {
	for _, s := range e.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// linked returns the modules and the standard library.
func (e Executable) linked() []Module {
	if e.GoVersion == "" {
		return nil
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(e.GoVersion, "go"), " ")
	return append(slices.Clone(e.Modules), Module{Path: stdlib, Version: version, License: "BSD-3-Clause"})
}

// main returns the main module with the release's version where the linker
// recorded none.
func (e Executable) main(info Info) Module {
	m := e.Main
	if m.Version == "" || m.Version == devel {
		m.Version = ""
		if info.Version != "" && info.Version[0] >= '0' && info.Version[0] <= '9' {
			m.Version = "v" + info.Version
		}
	}
	if m.License == "" {
		m.License = info.License
	}
	return m
}

// Licenses finds the licence of a module version; [ModuleCache] does it from
// the files on disk. It returns an SPDX expression, or "" for unknown.
type Licenses interface {
	License(path, version string) string
}

// Options of [Read] and [ReadFile]. The zero value is right for most uses.
type Options struct {
	// Licenses is asked for every module's licence; nil leaves them unknown.
	Licenses Licenses
	// SkipDigest leaves SHA256 empty, for callers who read the whole file anyway
	// and fill it in.
	SkipDigest bool
}

// ReadFile describes the executable at path. The name is the last element of
// path. Errors wrap [ErrNoBuildInfo] or those of the file system; with
// ErrNoBuildInfo the returned value still has the name and the digest.
func ReadFile(path string, opts Options) (Executable, error) {
	f, err := os.Open(path)
	if err != nil {
		return Executable{}, err
	}
	defer f.Close() //nolint:errcheck // read only
	exe, err := Read(f, opts)
	exe.Name = filepath.Base(path)
	if err != nil {
		return exe, fmt.Errorf("%s: %w", path, err)
	}
	return exe, nil
}

// Read describes the executable in r. See [ReadFile] for the errors.
func Read(r io.ReaderAt, opts Options) (Executable, error) {
	var exe Executable
	if !opts.SkipDigest {
		h := sha256.New()
		if _, err := io.Copy(h, io.NewSectionReader(r, 0, 1<<62)); err != nil {
			return Executable{}, err
		}
		exe.SHA256 = hex.EncodeToString(h.Sum(nil))
	}
	info, err := buildinfo.Read(r)
	if err != nil {
		return exe, fmt.Errorf("%w: %w", ErrNoBuildInfo, err)
	}
	exe.GoVersion, exe.Package = info.GoVersion, info.Path
	exe.Main = moduleOf(&info.Main, opts.Licenses)
	for _, dep := range info.Deps {
		exe.Modules = append(exe.Modules, moduleOf(dep, opts.Licenses))
	}
	slices.SortFunc(exe.Modules, Module.compare)
	for _, s := range info.Settings {
		exe.Settings = append(exe.Settings, Setting{Key: s.Key, Value: s.Value})
	}
	return exe, nil
}

func moduleOf(dep *debug.Module, licenses Licenses) Module {
	m := Module{Path: dep.Path, Version: dep.Version, Sum: dep.Sum}
	if r := dep.Replace; r != nil {
		m = Module{Path: r.Path, Version: r.Version, Sum: r.Sum, Replaces: dep.Path + "@" + dep.Version}
		if places.IsPath(r.Path) {
			// A folder's path says nothing to anybody else and may hold a name;
			// the module it stands in for is what a reader can look up.
			m.Path, m.Version = dep.Path, ""
		}
	}
	if licenses != nil && m.Version != "" {
		m.License = licenses.License(m.Path, m.Version)
	}
	return m
}
