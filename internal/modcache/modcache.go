// Package modcache reads modules and their licence texts from a Go module cache.
//
// It downloads nothing, and does not say which licence a text is: that is for
// package sbom.
package modcache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// Places are the folders of a Go installation that have texts.
type Places struct {
	// ModuleCache has the modules, and GoRoot the standard library.
	ModuleCache, GoRoot string
}

// goEnvironment are the variables that the go command finds its places by.
// https://pkg.go.dev/cmd/go#hdr-Environment_variables
func goEnvironment() []string {
	return []string{
		"PATH", "HOME", "GOPATH", "GOMODCACHE", "GOROOT", "GOENV", "XDG_CONFIG_HOME",
		"APPDATA", "LOCALAPPDATA", "USERPROFILE", "SystemRoot", "TEMP", "TMP", "PATHEXT",
	}
}

// Ask returns the places that the go command in PATH names, with the variables of
// an environment. It runs in the folder for temporary files, so that no project's
// go.mod has a say, and downloads no other toolchain.
func Ask(ctx context.Context, lookupEnv func(string) (string, bool)) (Places, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOROOT")
	cmd.Dir = os.TempDir()
	cmd.Env = []string{"GOTOOLCHAIN=local", "GOFLAGS=", "GOWORK=off"}
	for _, name := range goEnvironment() {
		if value, ok := lookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	out, err := cmd.Output()
	if err != nil {
		return Places{}, fmt.Errorf("asking the go command for GOMODCACHE and GOROOT: %w", err)
	}
	lines := strings.Split(strings.ReplaceAll(string(out), "\r\n", "\n"), "\n")
	if len(lines) < 2 || lines[0] == "" || lines[1] == "" {
		return Places{}, fmt.Errorf("go env GOMODCACHE GOROOT printed %q", out)
	}
	return Places{ModuleCache: lines[0], GoRoot: lines[1]}, nil
}

// Open opens the folder of a module version in the cache dir. The errors are
// those of module.EscapePath, or of the file system: fs.ErrNotExist if the cache
// does not have it.
func Open(dir, modulePath, version string) (*os.Root, error) {
	escapedPath, err := module.EscapePath(modulePath)
	if err != nil {
		return nil, err
	}
	escapedVersion, err := module.EscapeVersion(version)
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(filepath.Join(dir, filepath.FromSlash(escapedPath)+"@"+escapedVersion))
}

// What files with a licence are called, what else has to go with the code, and the
// folder of https://reuse.software/spec/. A name that ends as code is code.
var (
	licenseName = regexp.MustCompile(`(?i)^(un)?(licen[cs]es?|copying|copyleft|copyright)([-._ ].*)?$`)
	noticeName  = regexp.MustCompile(`(?i)^(notices?|patents|authors|legal|third[-_. ]?party[-_. ].*)([-._ ].*)?$`)
	docsEnding  = regexp.MustCompile(`(?i)[-._]docs?(\.(txt|md))?$`)
	licenseDir  = regexp.MustCompile(`(?i)^licen[cs]es$`)
	codeEnding  = regexp.MustCompile(`(?i)\.(go|c|h|cc|s|js|ts|py|rb|sh|rs|java|ya?ml|json|toml|xml|html?|css|tmpl|tpl|lre|hcl|mod|sum)$`)
)

// isLicense reports whether a file has the licence of the whole module's code, by
// its name. Some modules have another for their documentation.
func isLicense(name string) bool {
	dir, base := path.Split(name)
	if codeEnding.MatchString(base) || docsEnding.MatchString(base) {
		return false
	}
	return (dir == "" && licenseName.MatchString(base)) || (dir != "" && licenseDir.MatchString(path.Clean(dir)))
}

// isText reports whether a file anywhere in a module is a text that has to go with
// the code.
func isText(name string) bool {
	dir, base := path.Split(name)
	return !codeEnding.MatchString(base) &&
		(licenseName.MatchString(base) || noticeName.MatchString(base) || licenseDir.MatchString(path.Base(dir)))
}

// Bounds of what is read. The licence with the longest text in SPDX's list has
// about 60 kB; what is beyond them is an error, as nothing may be left out.
const (
	maxSize  = 1 << 20
	maxTexts = 1000
)

// ErrTooMuch says that a text, or the number of texts, is beyond all bounds.
var ErrTooMuch = errors.New("too much text")

// Text is a file of a module.
type Text struct {
	// Name is the file's in the module, with slashes.
	Name string
	// License says that it is the licence of the whole module.
	License bool
	// Content is the file's, as it is.
	Content []byte
}

// Texts returns the licences, notices, patents and authors of a module: files of
// those names in its folder, and in folders below it for code that came from
// elsewhere. What is for tests is left out, as the go command builds nothing of
// it. Those of the folder come first, sorted by name. Errors are [ErrTooMuch] and
// those of the file system.
func Texts(fsys fs.FS) ([]Text, error) {
	found, err := walk(fsys, isText, func(dir string) bool {
		base := path.Base(dir)
		return !strings.HasPrefix(base, ".") && !strings.HasPrefix(base, "_") && base != "testdata" && base != "node_modules"
	})
	slices.SortStableFunc(found, func(a, b Text) int {
		return strings.Count(a.Name, "/") - strings.Count(b.Name, "/")
	})
	return found, err
}

// RootTexts returns those of [Texts] that are in the folder itself.
func RootTexts(fsys fs.FS) ([]Text, error) {
	return walk(fsys, isText, func(string) bool { return false })
}

// Licenses returns those of [Texts] that are the licence of the whole module, and
// looks at nothing else.
func Licenses(fsys fs.FS) ([]Text, error) {
	return walk(fsys, isLicense, func(dir string) bool { return licenseDir.MatchString(dir) })
}

// walk reads the files that are wanted in the folder, and in those below it that
// are entered.
func walk(fsys fs.FS, want, enter func(name string) bool) ([]Text, error) {
	var found []Text
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && !enter(name):
			return fs.SkipDir
		case !d.Type().IsRegular() || !want(name):
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Size() > maxSize || len(found) == maxTexts {
			return fmt.Errorf("%w: %s has %d bytes and is text %d; at most %d bytes and %d texts are read", ErrTooMuch, name, info.Size(), len(found)+1, maxSize, maxTexts)
		}
		content, err := fs.ReadFile(fsys, name)
		found = append(found, Text{Name: name, License: isLicense(name), Content: content})
		return err
	})
	return found, err
}
