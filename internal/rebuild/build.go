package rebuild

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// Source is a checkout.
type Source struct {
	// Dir is its folder.
	Dir string
	// Version and Revision are told to [Options.Command].
	Version, Revision string
}

// Target is a published executable.
type Target struct {
	// OS, Arch and Variant name the platform, as in an image index.
	OS, Arch, Variant string
	// Executable is the published file, LDFlags what the publisher says that it
	// was linked with, "" for nothing.
	Executable, LDFlags string
}

// platform is "os/arch[/variant]".
func (t Target) platform() string { return strings.TrimSuffix(t.OS+"/"+t.Arch+"/"+t.Variant, "/") }

// Build builds what target was published as again, writes it to output and
// compares the two. The error says that there is nothing to compare: it matches
// [ErrRecipe], or is that of the build, with its output.
func Build(ctx context.Context, source Source, target Target, output string, opts Options) (Comparison, error) {
	// The go command leaves a file alone that says the right build ID, whatever
	// else is in it, and another command may write nothing.
	if err := os.Remove(output); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Comparison{}, err
	}
	if opts.Command != "" {
		if err := runCommand(ctx, source, target, output, opts.Command); err != nil {
			return Comparison{}, err
		}
		return Compare(target.Executable, output)
	}
	recipe, err := ReadRecipe(target.Executable, target.LDFlags, opts)
	if err != nil {
		return Comparison{}, err
	}
	dir, err := moduleDir(source.Dir, recipe.Module)
	if err != nil {
		return Comparison{}, err
	}
	cmd := exec.CommandContext(ctx, "go", recipe.arguments(dir, output)...) // #nosec G204 -- every argument was checked by the recipe
	cmd.Env = slices.Concat(environment(), harmless(ctx, dir), recipe.Env)
	if err := run(cmd); err != nil {
		return Comparison{}, err
	}
	c, err := compare(target.Executable, output, recipe)
	c.Command = recipe.Command()
	return c, err
}

func runCommand(ctx context.Context, source Source, target Target, output, command string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", command) // #nosec G204 -- it is the caller's own
	cmd.Dir = source.Dir
	cmd.Env = append(environment(),
		"OUTPUT="+output, "VERSION="+source.Version, "REVISION="+source.Revision, "PLATFORM="+target.platform(),
		"GOOS="+target.OS, "GOARCH="+target.Arch, "GOARM="+goarm(target))
	if err := run(cmd); err != nil {
		return err
	}
	if _, err := os.Stat(output); err != nil {
		return fmt.Errorf("the command wrote nothing to $OUTPUT: %w", err)
	}
	return nil
}

func goarm(t Target) string {
	if t.Arch != "arm" {
		return ""
	}
	return strings.TrimPrefix(t.Variant, "v")
}

// outputLimit is how much of a failed build is told, in bytes: its end.
const outputLimit = 4 << 10

func run(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(string(out))
	if len(text) > outputLimit {
		text = "…" + text[len(text)-outputLimit:]
	}
	return fmt.Errorf("building: %w\n%s", err, text)
}

// moduleDir finds the folder whose go.mod declares the module: most often the
// top.
func moduleDir(top, module string) (string, error) {
	found := ""
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || found != "" {
			return err
		}
		if name := d.Name(); d.IsDir() && path != top && (name == "vendor" || name == "testdata" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if !d.Type().IsRegular() || d.Name() != "go.mod" {
			return nil
		}
		content, err := os.ReadFile(path) // #nosec G122 -- of a checkout that is about to be built
		if err == nil && modfile.ModulePath(content) == module {
			found = filepath.Dir(path)
		}
		return err
	})
	if err == nil && found == "" {
		err = errors.New("no go.mod declares the module " + module)
	}
	if err != nil {
		return "", fmt.Errorf("%w: in %s: %w", ErrOrigin, top, err)
	}
	return filepath.Abs(found)
}
