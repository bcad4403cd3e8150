package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// listed is a package that is to be built, as go list describes it.
type listed struct {
	Dir, ImportPath string
	Standard        bool
	// SFiles are assembler, HFiles headers, SysoFiles objects that are linked in.
	SFiles, HFiles, SysoFiles []string
}

// inspectPackages looks at everything that is to be compiled before it is: a
// source can have files of this machine compiled in, or shown in error messages.
// The notes say what a build does not show the source of.
func inspectPackages(ctx context.Context, top, moduleDir string, recipe Recipe, env []string) (notes []string, err error) {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"-C", moduleDir, "list", "-deps", "-json=Dir,ImportPath,Standard,SFiles,HFiles,SysoFiles"}, recipe.listArgs(), []string{recipe.Package})...) // #nosec G204 -- every argument was checked by the recipe
	cmd.Env = env
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		return nil, buildError(err, failed.String())
	}
	allowed, err := folders(ctx, moduleDir, env)
	if err != nil {
		return nil, err
	}
	allowed = append(allowed, top)
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return notes, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Standard {
			continue
		}
		if !slices.ContainsFunc(allowed, func(dir string) bool { return within(dir, p.Dir) }) {
			return nil, fmt.Errorf("%w: the package %s is in %s, outside of the source", ErrRecipe, p.ImportPath, p.Dir)
		}
		if err := p.checkIncludes(); err != nil {
			return nil, err
		}
		for _, object := range p.SysoFiles {
			notes = append(notes, fmt.Sprintf("linked in without building it: %s of %s", object, p.ImportPath))
		}
	}
}

// folders are those of the go command's own packages and of modules.
func folders(ctx context.Context, moduleDir string, env []string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "-C", moduleDir, "env", "GOROOT", "GOMODCACHE") // #nosec G204 -- a folder of ours
	cmd.Env = env
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), nil
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(strings.TrimSpace(dir), path)
	return err == nil && filepath.IsLocal(rel)
}

var (
	// includes finds what the assembler may take for a directive; comments may be
	// anywhere in it. One that names no file in quotes matches, too.
	includes = regexp.MustCompile(`#(?:\s|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)*include\b([^\n]*)`)
	quoted   = regexp.MustCompile(`^(?:\s|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)*"([^"\\]+)"`)
)

// maxAssembler bounds a file of assembler, in bytes.
const maxAssembler = 16 << 20

// checkIncludes refuses assembler that includes what is not beneath its package:
// the assembler would read any file of this machine.
func (p listed) checkIncludes() error {
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	todo, seen := slices.Concat(p.SFiles, p.HFiles), map[string]bool{}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		content, err := readBeneath(root, name)
		if err != nil {
			return fmt.Errorf("%w: %s of %s: %w", ErrRecipe, name, p.ImportPath, err)
		}
		for _, found := range includes.FindAllStringSubmatch(content, -1) {
			file := quoted.FindStringSubmatch(found[1])
			if file == nil || !filepath.IsLocal(file[1]) {
				return fmt.Errorf("%w: %s of %s includes%.100s, which is not beneath the package", ErrRecipe, name, p.ImportPath, strings.TrimRight(found[1], "\r\n"))
			}
			todo = append(todo, file[1])
		}
	}
	return nil
}

// readBeneath reads a file that no link leads out of the package; what is not there
// is one of the assembler's own.
func readBeneath(root *os.Root, name string) (string, error) {
	info, err := root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxAssembler {
		return "", fmt.Errorf("not a file of at most %d bytes", maxAssembler)
	}
	content, err := root.ReadFile(name)
	return string(content), err
}
