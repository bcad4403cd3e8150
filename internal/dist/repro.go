package dist

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Repro builds the sources twice, each time from a copy in a folder of its own
// with an empty build cache, and returns the names of the files that differ.
// Out is not used. The copies hold what git tracks, as it is in the work tree.
func Repro(ctx context.Context, opts Options) (files []File, differ []string, err error) {
	work, err := os.MkdirTemp("", "repro-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(work) }()

	var builds [2][]File
	// Paths of different lengths: a path that leaks into an executable then
	// also moves what comes after it.
	for i, name := range []string{"a", "another-folder/with/a/longer/name"} {
		copied := filepath.Join(work, name)
		if err := copyTracked(ctx, opts.Source, copied); err != nil {
			return nil, nil, fmt.Errorf("copying the sources: %w", err)
		}
		build := opts
		build.Source = copied
		build.Out = filepath.Join(copied, "build", "dist")
		build.Env = []string{"GOCACHE=" + filepath.Join(work, fmt.Sprintf("cache%d", i))}
		if builds[i], err = Build(ctx, build); err != nil {
			return nil, nil, err
		}
	}
	return builds[0], Diff(builds[0], builds[1]), nil
}

// copyTracked copies the files of the work tree at source that git tracks.
func copyTracked(ctx context.Context, source, target string) error {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z")
	cmd.Dir = source
	list, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(source, name), filepath.Join(target, name)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	return err
}
