package dist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// The commands of a release.
const (
	pluginName = "fleeting-plugin-openstack"
	toolName   = "fleeting-plugin"
)

// Options say what to build. Source, Out and Version are needed.
type Options struct {
	// Source is the root of the module.
	Source string
	// Out is the folder to write to; it is made.
	Out string
	// Version goes into the executables, without "v".
	Version string
	// Revision is the commit, or "".
	Revision string
	// Platforms to build for.
	Platforms []artifact.Platform
	// PluginOnly leaves the distribution tool out.
	PluginOnly bool
	// Env is added to the environment of the go command.
	Env []string
	// Log gets one line for each executable; nil discards.
	Log io.Writer
}

// File is a file of a release.
type File struct {
	// Path is relative to the folder, with slashes.
	Path string
	// SHA256 is in lower-case hex.
	SHA256 string
}

// Build writes, for each platform, the plugin where `fleeting-plugin package`
// looks for it (plugin/OS/ARCH/plugin), both executables under the names that
// people download (bin/NAME-OS-ARCH), the licences of what is linked into them
// (beside the plugin, in bin, and for each executable notices/NAME-OS-ARCH.txt),
// and bin/SHA256SUMS. The folders bin, plugin and notices of an earlier build go
// first. It returns all files, sorted by path. A module that has no licence text
// is an error, [notices.ErrNoText].
func Build(ctx context.Context, opts Options) ([]File, error) {
	out, err := filepath.Abs(opts.Out)
	if err != nil {
		return nil, err
	}
	// SHA256SUMS and what is packaged are all that is there.
	for _, dir := range []string{"bin", "plugin", noticesDir} {
		if err := os.RemoveAll(filepath.Join(out, dir)); err != nil {
			return nil, err
		}
	}
	for _, p := range opts.Platforms {
		if err := buildPlatform(ctx, opts, p, out); err != nil {
			return nil, fmt.Errorf("building for %s: %w", p, err)
		}
	}
	if err := writeNotices(ctx, opts, out); err != nil {
		return nil, err
	}
	if err := WriteSums(filepath.Join(out, "bin")); err != nil {
		return nil, err
	}
	return Files(out)
}

func buildPlatform(ctx context.Context, opts Options, p artifact.Platform, out string) error {
	bin := filepath.Join(out, "bin")
	plugin := filepath.Join(bin, download(pluginName, p))
	if err := goBuild(ctx, opts, p, pluginName, plugin); err != nil {
		return err
	}
	packaged := filepath.Join(out, "plugin", filepath.FromSlash(p.Dir()), p.Executable())
	if err := link(plugin, packaged); err != nil {
		return err
	}
	if opts.PluginOnly {
		return nil
	}
	return goBuild(ctx, opts, p, toolName, filepath.Join(bin, download(toolName, p)))
}

// LDFlags are the -ldflags of the go command with which [Build] builds, which
// provenance has to say: `make ldflags` prints them.
func LDFlags(version, revision string) string {
	return fmt.Sprintf("-s -w -X main.version=%s -X main.revision=%s", version, revision)
}

func goBuild(ctx context.Context, opts Options, p artifact.Platform, command, target string) error {
	//nolint:gosec // the arguments are ours: a command of this module and a target folder
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-ldflags", LDFlags(opts.Version, opts.Revision), "-o", target, "./cmd/"+command)
	cmd.Dir = opts.Source
	cmd.Env = slices.Concat(os.Environ(), opts.Env, environment(p))
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(output)))
	}
	if opts.Log != nil {
		fmt.Fprintf(opts.Log, "%s %s\n", command, p)
	}
	return nil
}

// link puts the file at source also at target, sharing its bytes where the file
// system can.
func link(source, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := os.Remove(target); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Link(source, target); err == nil {
		return nil
	}
	content, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	return os.WriteFile(target, content, 0o755) //nolint:gosec // an executable
}

// WriteSums writes SHA256SUMS of the other files in dir, as sha256sum does.
func WriteSums(dir string) error {
	const name = "SHA256SUMS"
	files, err := Files(dir)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range files {
		if f.Path != name {
			fmt.Fprintf(&sums, "%s  %s\n", f.SHA256, f.Path)
		}
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(sums.String()), 0o644)
}

// Files lists the regular files below dir with their digests, sorted by path.
func Files(dir string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		sum, err := fileSum(path)
		if err != nil {
			return err
		}
		files = append(files, File{Path: filepath.ToSlash(rel), SHA256: sum})
		return nil
	})
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, err
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Diff names every file that is in one list only, or differs; none when both
// are the same. Both lists are sorted by path, as [Files] returns them.
func Diff(a, b []File) []string {
	sums := make(map[string]string, len(a))
	for _, f := range a {
		sums[f.Path] = f.SHA256
	}
	var differ []string
	for _, f := range b {
		if sums[f.Path] != f.SHA256 {
			differ = append(differ, f.Path)
		}
		delete(sums, f.Path)
	}
	for path := range sums {
		differ = append(differ, path)
	}
	slices.Sort(differ)
	return differ
}
