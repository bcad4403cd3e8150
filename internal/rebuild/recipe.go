package rebuild

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	goversion "go/version"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ldflags"
)

// ErrRecipe is an executable that does not say how it was built, or whose build
// cannot be repeated without running somebody's code.
var ErrRecipe = errors.New("cannot be built again")

// Options are the choices for builds. The zero value runs no code of the source.
type Options struct {
	// LDFlags are the -ldflags, in place of those that the executable or the
	// origin say. An executable built with -trimpath does not say them.
	LDFlags string
	// Command, run by sh in the source, builds in place of the go command. It
	// writes the executable to $OUTPUT and knows VERSION, REVISION, PLATFORM,
	// GOOS, GOARCH and GOARM. It runs with all rights of the caller.
	Command string
	// AllowCgo builds with cgo what was built with it; the C compiler then runs
	// with flags of the source.
	AllowCgo bool
	// DownloadToolchain lets the go command fetch the Go version that the
	// executable names, in place of building with the one that is there.
	DownloadToolchain bool
}

// Recipe is how the go command is to be called.
type Recipe struct {
	// Module and Package are import paths: the main module and package.
	Module, Package string
	// Args follow "go build"; the output and the package do not belong to them.
	Args []string
	// Env is set on top of the caller's environment.
	Env []string
	// notes are causes of differences that nothing can be done about here.
	notes []string
	// unknownFlags says that nobody tells the linker flags.
	unknownFlags bool
}

// ReadRecipe reads an executable's build information. known are linker flags
// that the publisher says elsewhere. Errors match [ErrRecipe].
func ReadRecipe(executable, known string, opts Options) (Recipe, error) {
	info, err := buildinfo.ReadFile(executable)
	if err != nil {
		return Recipe{}, fmt.Errorf("%w: it has no Go build information: %w", ErrRecipe, err)
	}
	if info.Main.Path == "" || info.Path == "" || info.Path == "command-line-arguments" {
		return Recipe{}, fmt.Errorf("%w: it does not say which package it is", ErrRecipe)
	}
	if err := checkPackage(info.Main.Path, info.Path); err != nil {
		return Recipe{}, err
	}
	if info.Main.Sum != "" {
		return Recipe{}, fmt.Errorf("%w: it was installed from the module %s@%s, not built in a checkout", ErrRecipe, info.Main.Path, info.Main.Version)
	}
	r := Recipe{Module: info.Main.Path, Package: info.Path}
	toolchain, err := toolchainOf(info, opts)
	if err != nil {
		return Recipe{}, err
	}
	mode := "-mod=readonly"
	vendored := len(info.Deps) > 0 && !slices.ContainsFunc(info.Deps, func(m *debug.Module) bool { return m.Sum != "" || m.Replace != nil })
	if vendored {
		mode = "-mod=vendor"
	}
	r.Env = []string{"GOFLAGS=" + mode, "GOTOOLCHAIN=" + toolchain, "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off", "CGO_ENABLED=0"}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
		if err := r.setting(s.Key, s.Value, opts); err != nil {
			return Recipe{}, err
		}
	}
	if settings["vcs"] == "" {
		r.Args = append(r.Args, "-buildvcs=false")
	} else {
		r.Args = append(r.Args, "-buildvcs=true")
	}
	if settings["-trimpath"] != "true" {
		r.notes = append(r.notes, "it was built without -trimpath, so it has the names of the publisher's folders in it")
	}
	return r, r.linker(settings, known, opts)
}

// toolchainOf is which Go version is to build: a release, or the one that is
// there.
func toolchainOf(info *debug.BuildInfo, opts Options) (string, error) {
	if !opts.DownloadToolchain {
		return "local", nil
	}
	toolchain, _, _ := strings.Cut(info.GoVersion, " ")
	if !goversion.IsValid(toolchain) {
		return "", fmt.Errorf("%w: it was built with Go %q, which is no release", ErrRecipe, info.GoVersion)
	}
	return toolchain, nil
}

// checkPackage refuses what the go command would take for a flag, for several
// packages or for one of another module.
func checkPackage(path, name string) error {
	below, inside := strings.CutPrefix(name, path)
	if module.CheckImportPath(path) != nil || module.CheckImportPath(name) != nil || !inside || below != "" && below[0] != '/' {
		return fmt.Errorf("%w: it says that it is the package %q of the module %q", ErrRecipe, name, path)
	}
	return nil
}

// choosesProcessor reports whether a variable only says for which processor and
// system to compile, and in which way. Others of the go command's variables name
// programs, folders and servers. https://pkg.go.dev/cmd/go#hdr-Environment_variables
func choosesProcessor(key string) bool {
	return slices.Contains([]string{
		"GOOS", "GOARCH", "GO386", "GOAMD64", "GOARM", "GOARM64", "GOMIPS", "GOMIPS64", "GOPPC64", "GORISCV64", "GOWASM",
		"GOEXPERIMENT", "GOFIPS140",
	}, key)
}

// setting repeats one setting. Whoever signed it chose it, but not that it
// should run here: what is not known to run nothing is refused.
func (r *Recipe) setting(key, value string, opts Options) error {
	switch {
	case slices.Contains([]string{"-buildmode=exe", "-compiler=gc"}, key+"="+value):
		// What it is without a flag. Given as a flag, the build ID is another one.
	case slices.Contains([]string{"-trimpath", "-tags"}, key), key+"="+value == "-buildmode=pie":
		r.Args = append(r.Args, key+"="+value)
	case key == "CGO_ENABLED":
		if value != "0" && !opts.AllowCgo {
			return fmt.Errorf("%w: it was built with cgo, and that runs the C compiler with flags of the source", ErrRecipe)
		}
		if value != "0" {
			r.Env = append(r.Env, key+"="+value) // it is off from the start
		}
	case strings.HasPrefix(key, "CGO_"):
		if value != "" {
			return fmt.Errorf("%w: it was built with %s=%s", ErrRecipe, key, value)
		}
	case choosesProcessor(key):
		r.Env = append(r.Env, key+"="+value)
	case slices.Contains([]string{"-ldflags", "-pgo", "DefaultGODEBUG", "vcs"}, key), strings.HasPrefix(key, "vcs."):
		// The flags come below; the others follow from the source.
	default:
		return fmt.Errorf("%w: it was built with %s=%s, which rebuild does not repeat", ErrRecipe, key, value)
	}
	return nil
}

// linker settles the linker flags: the caller's, else those that the executable
// says, else those that the publisher says elsewhere.
func (r *Recipe) linker(settings map[string]string, known string, opts Options) error {
	flags := opts.LDFlags
	if flags == "" {
		flags = settings["-ldflags"]
	}
	if flags == "" {
		flags = known
		if known == "" && settings["-trimpath"] == "true" {
			r.unknownFlags = true
			r.notes = append(r.notes, "it was built with -trimpath, so it does not say its -ldflags, and neither does its provenance")
		}
	}
	if flags == "" {
		return nil
	}
	if err := checkLDFlags(flags); err != nil && opts.LDFlags == "" {
		return err
	}
	r.Args = append(r.Args, "-ldflags="+flags)
	return nil
}

// checkLDFlags lets through what sets and strips. Others can make the linker
// start a program or write elsewhere. https://pkg.go.dev/cmd/link
func checkLDFlags(flags string) error {
	words, err := ldflags.Split(flags)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRecipe, err)
	}
	for i := 0; i < len(words); i++ {
		name, _, joined := strings.Cut(strings.TrimLeft(words[i], "-"), "=")
		switch {
		case !strings.HasPrefix(words[i], "-"):
			return fmt.Errorf("%w: linker flags %q: %q is not a flag", ErrRecipe, flags, words[i])
		case name == "s" || name == "w" || (name == "buildid" || name == "checklinkname") && joined:
		case name == "X" && joined:
		case name == "X" && i+1 < len(words):
			i++ // its value is the next word
		default:
			return fmt.Errorf("%w: linker flag %s is not repeated by rebuild", ErrRecipe, words[i])
		}
	}
	return nil
}

// Command is the call of the go command as a person would type it.
func (r Recipe) Command() string {
	words := slices.Concat(r.Env, []string{"go", "build"}, r.Args, []string{r.Package})
	for i, word := range words {
		if strings.ContainsAny(word, " \t'\"$") {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// listArgs are the arguments that choose what is built, without those for linking
// and for looking at the repository.
func (r Recipe) listArgs() []string {
	args := slices.DeleteFunc(slices.Clone(r.Args), func(arg string) bool {
		return strings.HasPrefix(arg, "-ldflags=") || strings.HasPrefix(arg, "-buildvcs=")
	})
	return append(args, "-buildvcs=false")
}

// arguments are those of the go command.
func (r Recipe) arguments(moduleDir, output string) []string {
	return slices.Concat([]string{"-C", moduleDir, "build", "-o", filepath.Clean(output)}, r.Args, []string{r.Package})
}
