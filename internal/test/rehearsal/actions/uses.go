package actions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// use does what an action does, as far as a release needs it.
func (r *Runner) use(ctx context.Context, m *machine, s Step) error {
	known := map[string]struct {
		inputs []string
		do     func(ctx context.Context, m *machine, with map[string]string) error
	}{
		"actions/checkout":          {[]string{"fetch-depth", "persist-credentials", "path"}, r.checkout},
		"actions/setup-go":          {[]string{"go-version-file", "cache"}, r.setupGo},
		"actions/upload-artifact":   {[]string{"name", "path", "if-no-files-found"}, r.upload},
		"actions/download-artifact": {[]string{"name", "path"}, r.download},
	}
	action, ok := known[s.String()]
	if !ok {
		return fmt.Errorf("%w: the action is not known here", ErrWorkflow)
	}
	with := map[string]string{}
	for name, value := range s.With {
		if !slices.Contains(action.inputs, name) {
			return fmt.Errorf("%w: the input %s is not known here", ErrWorkflow, name)
		}
		var err error
		if with[name], err = Fill(value, m.values); err != nil {
			return err
		}
	}
	return action.do(ctx, m, with)
}

// checkout is https://github.com/actions/checkout, for a tag.
func (r *Runner) checkout(ctx context.Context, m *machine, with map[string]string) error {
	if m.job.Permissions["contents"] == "" {
		return fmt.Errorf("%w: the job may not read the repository: give it contents: read", ErrWorkflow)
	}
	if with["persist-credentials"] != "false" {
		return fmt.Errorf("%w: the token would stay in .git/config for every later step: set persist-credentials: false", ErrWorkflow)
	}
	dir, err := m.within(with["path"])
	if err != nil {
		return err
	}
	// What is there and is no checkout goes.
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	depth, err := strconv.Atoi(cmp.Or(with["fetch-depth"], "1"))
	if err != nil {
		return fmt.Errorf("%w: fetch-depth: %w", ErrWorkflow, err)
	}
	return r.host().Checkout(ctx, r.Source, strings.TrimPrefix(r.Ref, "refs/tags/"), dir, depth, m.env)
}

// setupGo is https://github.com/actions/setup-go: the Go that is here, if it is the
// one that the file asks for.
func (r *Runner) setupGo(_ context.Context, m *machine, with map[string]string) error {
	path, err := m.within(with["go-version-file"])
	if err != nil {
		return err
	}
	if _, err := os.ReadFile(path); err != nil { // #nosec G304 -- within the workspace
		return err
	}
	if with["cache"] != "false" {
		return fmt.Errorf("%w: a cache is filled by other runs: set cache: false", ErrWorkflow)
	}
	// A Go that is older than the file asks for ends every command with this.
	m.env = append(m.env, "GOTOOLCHAIN=local", "PATH="+r.Path)
	return nil
}

func (r *Runner) artifact(name string) string { return filepath.Join(r.Dir, "artifacts", name) }

// upload is https://github.com/actions/upload-artifact.
func (r *Runner) upload(_ context.Context, m *machine, with map[string]string) error {
	source, err := m.within(with["path"])
	if err != nil {
		return err
	}
	name := with["name"]
	if !filepath.IsLocal(name) || strings.Contains(name, "/") {
		return fmt.Errorf("%w: artifact %q", ErrWorkflow, name)
	}
	if by := r.shared[name]; by != "" && by != m.name {
		return fmt.Errorf("%w: the jobs %s and %s upload %s", ErrWorkflow, by, m.name, name)
	}
	if r.shared == nil {
		r.shared = map[string]string{}
	}
	r.shared[name] = m.name
	if err := os.RemoveAll(r.artifact(name)); err != nil {
		return err
	}
	copied, err := copyFiles(source, r.artifact(name))
	if err == nil && copied == 0 && with["if-no-files-found"] == "error" {
		err = fmt.Errorf("%s: %w", source, errNothing)
	}
	return err
}

var errNothing = errors.New("no files")

// download is https://github.com/actions/download-artifact: one artifact, or each
// into a folder of its own. Only what a job waits for is certainly there.
func (r *Runner) download(_ context.Context, m *machine, with map[string]string) error {
	target, err := m.within(with["path"])
	if err != nil {
		return err
	}
	before := r.Workflow.after(m.name)
	found := 0
	for name, by := range r.shared {
		into := filepath.Join(target, name)
		if with["name"] != "" {
			into = target
		}
		if !before[by] || with["name"] != "" && with["name"] != name {
			continue
		}
		found++
		if _, err := copyFiles(r.artifact(name), into); err != nil {
			return err
		}
	}
	if found == 0 {
		return fmt.Errorf("artifact %q: %w that a job before this one uploads", with["name"], errNothing)
	}
	return nil
}

// copyFiles copies files, without their modes and without hidden ones, and returns
// how many.
func copyFiles(source, target string) (int, error) {
	copied := 0
	err := filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		rel, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path) // #nosec G304 G122 -- the rehearsal's own folder
		if err != nil {
			return err
		}
		to := filepath.Join(target, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
			return err
		}
		copied++
		return os.WriteFile(to, content, 0o644) // #nosec G306 G703 -- as the action does, below the rehearsal's own folder
	})
	return copied, err
}
