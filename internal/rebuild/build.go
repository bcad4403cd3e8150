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

	"github.com/radome-io/fleeting-plugin-openstack/internal/scratch"
)

// Source is a tree to build from. [Origin.Clone] and [Copy] make one that has no
// repository in it but ours, so that nothing of it is run. Of another one [Build]
// makes a copy.
type Source struct {
	// Dir is its folder.
	Dir string
	// Version and Revision are told to [Options.Command].
	Version, Revision string
	// LeftOut are files that are not built: links that lead out of the source, and
	// what is neither a file nor a folder.
	LeftOut []string

	// top is the folder that Dir is in, "" if it is not ours. commit is checked out
	// there, "" for none.
	top, commit string
}

// Copy copies a checkout into a folder of ours, with a repository that is at the
// same commit. It returns that commit, "" if there is none, and the files that
// differ from it or are not in it. The last error says that these cannot be told;
// then the copy has no repository.
func Copy(ctx context.Context, dir, to string) (source Source, changed []string, unknown, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return Source{}, nil, nil, err
	}
	found := findRepository(dir)
	if err := os.MkdirAll(to, 0o700); err != nil {
		return Source{}, nil, nil, err
	}
	leftOut, err := copyTree(ctx, found.top, to)
	if err != nil {
		return Source{}, nil, nil, err
	}
	below, err := filepath.Rel(found.top, dir)
	if err != nil {
		return Source{}, nil, nil, err
	}
	source = Source{Dir: filepath.Join(to, below), LeftOut: leftOut, top: to, commit: found.commit}
	if found.commit == "" {
		return source, nil, nil, nil
	}
	unknown = found.restore(ctx, to)
	if unknown == nil {
		changed, unknown = different(ctx, to)
	}
	if unknown != nil {
		err = errors.Join(ctx.Err(), os.RemoveAll(filepath.Join(to, ".git")))
	}
	return source, changed, unknown, err
}

// ours is the source, or a copy of it in a folder that done removes.
func (s Source) ours(ctx context.Context) (_ Source, done func(), err error) {
	if s.top != "" {
		return s, func() {}, nil
	}
	work, err := scratch.New()
	if err != nil {
		return Source{}, nil, err
	}
	done = func() { _ = work.Close() }
	copied, _, _, err := Copy(ctx, s.Dir, filepath.Join(work.Dir, "source"))
	if err != nil {
		done()
		return Source{}, nil, err
	}
	copied.Version, copied.Revision = s.Version, s.Revision
	return copied, done, nil
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
	source, done, err := source.ours(ctx)
	if err != nil {
		return Comparison{}, err
	}
	defer done()
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
	settings, err := goSettings(ctx, filepath.Dir(output))
	if err != nil {
		return Comparison{}, err
	}
	// Modules are fetched as the user fetches them. Nothing of the source sees that.
	notes, err := inspectPackages(ctx, source.top, dir, recipe, slices.Concat(ofUser(), settings, recipe.Env))
	if err != nil {
		return Comparison{}, err
	}
	cmd := exec.CommandContext(ctx, "go", recipe.arguments(dir, output)...) // #nosec G204 -- every argument was checked by the recipe
	cmd.Env = slices.Concat(environment(), alone(), settings, recipe.Env)
	if err := run(cmd); err != nil {
		return Comparison{}, err
	}
	c, err := compare(target.Executable, output, recipe)
	c.Command, c.Notes = recipe.Command(), notes
	return c, err
}

func runCommand(ctx context.Context, source Source, target Target, output, command string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", command) // #nosec G204 -- it is the caller's own
	cmd.Dir = source.Dir
	cmd.Env = slices.Concat(environment(), alone(), []string{
		"OUTPUT=" + output, "VERSION=" + source.Version, "REVISION=" + source.Revision, "PLATFORM=" + target.platform(),
		"GOOS=" + target.OS, "GOARCH=" + target.Arch, "GOARM=" + goarm(target),
	})
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
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return buildError(err, string(out))
	}
	return nil
}

// tail is the end of what is written to it: a build can write without end.
type tail []byte

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if extra := len(*t) - 2*outputLimit; extra > 0 {
		*t = append((*t)[:0], (*t)[extra:]...)
	}
	return len(p), nil
}

// buildError tells of a failed build, with the end of what it said.
func buildError(err error, output string) error {
	text := strings.TrimSpace(output)
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
		if modfile.ModulePath([]byte(readSmall(path))) == module {
			found = filepath.Dir(path)
		}
		return nil
	})
	if err == nil && found == "" {
		err = errors.New("no go.mod declares the module " + module)
	}
	if err != nil {
		return "", fmt.Errorf("%w: in %s: %w", ErrOrigin, top, err)
	}
	return filepath.Abs(found)
}
