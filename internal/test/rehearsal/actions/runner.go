package actions

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Runner runs the jobs of a workflow. Its fields are what a rehearsal has in place
// of GitHub's.
type Runner struct {
	// Workflow is what is run.
	Workflow *Workflow
	// Source is the repository that jobs check out, with Ref, the full name of a tag
	// such as refs/tags/v1.2.3, in it.
	Source, Ref string
	// Dir is where the machines are, and what they upload.
	Dir string
	// Path is where machines have their programs. Go among them is there only once a
	// job has set it up: that of GitHub's image is of any version.
	Path string
	// Env is what the machine of a job has besides; nothing of the caller's
	// environment is there unasked. Values are those of expressions.
	Env    func(name string, job *Job) ([]string, error)
	Values func(name string, job *Job) (map[string]string, error)
	// Host takes checkouts and runs scripts; nil is [Local].
	Host Host
	// Output is what steps print.
	Output io.Writer
	// Done is told of each step that was taken.
	Done func(job string, s Step, took time.Duration)

	attempt int
	// shared names the jobs that have uploaded something, by its name.
	shared map[string]string
}

// machine is what a job runs on.
type machine struct {
	name                  string
	job                   *Job
	workspace, home, temp string
	env                   []string
	values                map[string]string
}

// Run runs every job, in order; the first step that fails ends it.
func (r *Runner) Run(ctx context.Context) error {
	starts := func(pattern string) bool {
		matched, err := path.Match(pattern, strings.TrimPrefix(r.Ref, "refs/tags/"))
		return matched && err == nil
	}
	if !slices.ContainsFunc(r.Workflow.On.Push.Tags, starts) {
		return fmt.Errorf("%w: %s does not start it", ErrWorkflow, r.Ref)
	}
	order, err := r.Workflow.Order()
	if err != nil {
		return err
	}
	for _, name := range order {
		if err := r.RunJob(ctx, name, -1); err != nil {
			return err
		}
	}
	return nil
}

// RunJob runs a job on a new machine, as running it again does. With steps of 0 or
// more it stops before that step, as if the machine had been lost.
func (r *Runner) RunJob(ctx context.Context, name string, steps int) error {
	r.attempt++
	m, err := r.newMachine(name)
	if err != nil {
		return err
	}
	for i, s := range m.job.Steps {
		if i == steps {
			return nil
		}
		start := time.Now()
		if s.Uses != "" {
			err = r.use(ctx, m, s)
		} else {
			err = r.script(ctx, m, s)
		}
		if err != nil {
			return fmt.Errorf("job %s: %s: %w", name, s, err)
		}
		if r.Done != nil {
			r.Done(name, s, time.Since(start))
		}
	}
	return nil
}

// Keep forgets what jobs have uploaded, except for those named: the next run has
// only that of theirs.
func (r *Runner) Keep(jobs ...string) {
	maps.DeleteFunc(r.shared, func(_, by string) bool { return !slices.Contains(jobs, by) })
}

func (r *Runner) newMachine(name string) (*machine, error) {
	job := r.Workflow.Jobs[name]
	if job == nil {
		return nil, fmt.Errorf("%w: no job %s", ErrWorkflow, name)
	}
	root := filepath.Join(r.Dir, "machines", fmt.Sprintf("%d-%s", r.attempt, name))
	m := &machine{name: name, job: job, workspace: filepath.Join(root, "work"), home: filepath.Join(root, "home"), temp: filepath.Join(root, "temp")}
	stand := filepath.Join(root, "bin")
	for _, dir := range []string{m.workspace, m.home, m.temp, stand} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, err
		}
	}
	const noGo = "#!/bin/sh\necho 'this job has not set up Go' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(stand, "go"), []byte(noGo), 0o755); err != nil { // #nosec G306 -- it is executed
		return nil, err
	}
	var err error
	if m.values, err = r.Values(name, job); err != nil {
		return nil, err
	}
	extra, err := r.Env(name, job)
	if err != nil {
		return nil, err
	}
	m.env = slices.Concat([]string{
		"CI=true", "GITHUB_ACTIONS=true", "GITHUB_REF=" + r.Ref, "GITHUB_REF_NAME=" + filepath.Base(r.Ref), "GITHUB_JOB=" + name,
		fmt.Sprintf("GITHUB_RUN_ATTEMPT=%d", r.attempt), "GITHUB_WORKSPACE=" + m.workspace,
		"HOME=" + m.home, "TMPDIR=" + m.temp, "RUNNER_TEMP=" + m.temp, "LANG=C.UTF-8",
		"PATH=" + stand + string(os.PathListSeparator) + r.Path,
		"GIT_CONFIG_NOSYSTEM=1",
	}, extra)
	return m, nil
}

// script runs a step as GitHub does: with `bash -e` from a file.
func (r *Runner) script(ctx context.Context, m *machine, s Step) error {
	env := slices.Clone(m.env)
	for name, value := range s.Env {
		filled, err := Fill(value, m.values)
		if err != nil {
			return err
		}
		env = append(env, name+"="+filled)
	}
	file := filepath.Join(m.temp, "step.sh")
	if err := os.WriteFile(file, []byte(s.Run), 0o600); err != nil {
		return err
	}
	var said tail
	if err := r.host().Script(ctx, m.workspace, file, env, io.MultiWriter(r.Output, &said)); err != nil {
		return fmt.Errorf("%w\n%s", err, said.String())
	}
	return nil
}

// Host is what a machine does itself.
type Host interface {
	// Checkout puts the commit of a tag of a repository into a new folder, with the
	// depth of the history, or 0 for all of it and every tag.
	Checkout(ctx context.Context, repository, tag, dir string, depth int, env []string) error
	// Script runs a file with bash in a folder.
	Script(ctx context.Context, dir, file string, env []string, output io.Writer) error
}

func (r *Runner) host() Host {
	if r.Host == nil {
		return Local{}
	}
	return r.Host
}

// Local is this machine, with git and bash.
type Local struct{}

// Checkout clones.
func (Local) Checkout(ctx context.Context, repository, tag, dir string, depth int, env []string) error {
	args := []string{"-c", "advice.detachedHead=false", "clone", "-q", "--no-local", "--branch", tag}
	if depth > 0 {
		args = append(args, "--depth", strconv.Itoa(depth))
	}
	cmd := exec.CommandContext(ctx, "git", append(args, "--", repository, dir)...) // #nosec G204 -- the rehearsal's own
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git clone: %w\n%s", err, out)
	}
	return nil
}

// Script starts bash.
func (Local) Script(ctx context.Context, dir, file string, env []string, output io.Writer) error {
	cmd := exec.CommandContext(ctx, "bash", "-e", file) // #nosec G204 -- the workflow's own step
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, output, output
	return cmd.Run()
}

// tail keeps the end of what is written.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	const limit = 4096
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - limit; over > 0 {
		t.kept = slices.Delete(t.kept, 0, over)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.kept)) }

// within returns a path of the workspace, and refuses one outside.
func (m *machine) within(name string) (string, error) {
	if name = cmp.Or(name, "."); !filepath.IsLocal(name) {
		return "", fmt.Errorf("%w: %s is not in the workspace", ErrWorkflow, name)
	}
	return filepath.Join(m.workspace, filepath.FromSlash(name)), nil
}
