package actions_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/rehearsal/actions"
)

const top = "../../../.."

// world is what a rehearsal of release.yml changes: a registry, and GitHub. The
// targets of release.mk need and leave in it what the real ones do, so that a
// rehearsal takes milliseconds.
type world struct {
	places map[string]string
}

const tag = "v1.2.3"

// Checkout lays out what the targets look at.
func (*world) Checkout(_ context.Context, _, tag, dir string, depth int, _ []string) error {
	return errors.Join(os.MkdirAll(dir, 0o750), os.WriteFile(filepath.Join(dir, "go.mod"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "release.mk"), fmt.Appendf(nil, "%s %d", tag, depth), 0o600))
}

// Script runs make.
func (w *world) Script(_ context.Context, dir, file string, env []string, _ io.Writer) error {
	script, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	words := strings.Fields(string(script))
	if words[0] != "make" {
		return fmt.Errorf("%q failed", script)
	}
	words = words[1:]
	if len(words) > 0 && words[0] == "-C" {
		dir, words = filepath.Join(dir, words[1]), words[2:]
	}
	m := making{world: w, dir: dir, env: map[string]string{}}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		m.env[name] = value
	}
	for _, target := range words {
		if m.make(target); m.problem != nil {
			return fmt.Errorf("make %s: %w", target, m.problem)
		}
	}
	return nil
}

// making is one call of make.
type making struct {
	*world
	dir     string
	env     map[string]string
	problem error
}

func (m *making) fail(format string, args ...any) {
	m.problem = errors.Join(m.problem, fmt.Errorf(format, args...))
}

func (m *making) needs(files ...string) {
	for _, name := range files {
		if _, err := os.Stat(filepath.Join(m.dir, name)); err != nil {
			m.fail("there is no %s", name)
		}
	}
}

func (m *making) write(name, content string) {
	path := filepath.Join(m.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		m.fail("%w", err)
	}
}

// add writes to a place where nothing is written twice, unless it is the same.
func (m *making) add(name, content string) {
	if have, ok := m.places[name]; ok && have != content {
		m.fail("%s holds something else", name)
	}
	m.places[name] = content
}

func (m *making) published(names ...string) {
	for _, name := range names {
		if _, ok := m.places[name]; !ok {
			m.fail("%s is not there", name)
		}
	}
}

func (m *making) mayPush() {
	if m.env["REGISTRY_USER"] != "actor" || !strings.Contains(m.env["REGISTRY_PASSWORD"], "packages:write") {
		m.fail("the registry refuses the login")
	}
}

func (m *making) maySign() {
	if m.env["ACTIONS_ID_TOKEN_REQUEST_TOKEN"] == "" {
		m.fail("no identity")
	}
}

func (m *making) noToken() {
	if m.env["ACTIONS_ID_TOKEN_REQUEST_TOKEN"]+m.env["REGISTRY_PASSWORD"]+m.env["GH_TOKEN"] != "" {
		m.fail("a token is in reach")
	}
}

const tool, sums, attested = "build/dist/bin/tool", "build/dist/bin/SHA256SUMS", "build/dist/bin/provenance.sigstore.json"

func (m *making) make(target string) {
	m.needs("release.mk")
	// The first go in PATH is the image's, unless it was set up.
	if first, _, _ := strings.Cut(m.env["PATH"], string(os.PathListSeparator)); first != goPath && target != "release-show" {
		m.fail("no Go")
	}
	switch target {
	case "release-ready":
	case "dist":
		m.noToken()
		m.write(tool, tag)
	case "release-files":
		m.noToken()
		m.needs(tool)
		m.write(sums, "sums")
	case "release-look":
		m.noToken()
		m.needs(tool)
	case "release-compare":
		m.needs("downloaded/dist/bin/tool", "downloaded/dist/bin/SHA256SUMS", "downloaded/dist-again/bin/tool", "downloaded/dist-again/bin/SHA256SUMS")
		m.write(tool, tag)
		m.write(sums, "sums")
	case "release-publish", "release-image":
		m.needs(tool)
		m.mayPush()
		m.maySign()
		m.add(strings.TrimPrefix(target, "release-")+":"+tag, "content")
	case "release-attest":
		m.needs(tool)
		m.maySign()
		m.write(attested, m.env["GITHUB_RUN_ATTEMPT"])
	case "release-check", "release-rebuild":
		m.noToken()
		m.published("publish:" + tag)
	case "release-check-files":
		m.noToken()
		m.needs(tool, sums, attested)
	case "release-promote":
		m.mayPush()
		m.published("publish:"+tag, "image:"+tag)
		m.add("latest", tag)
	case "release-show":
		m.needs(tool, sums, attested)
		if !strings.Contains(m.env["GH_TOKEN"], "contents:write") {
			m.fail("GitHub refuses the token")
		}
		if content, err := os.ReadFile(filepath.Join(m.dir, "release.mk")); err != nil || string(content) != tag+" 0" {
			m.fail("not every tag is there")
		}
		m.add("GitHub", tag)
	default:
		m.fail("no such target")
	}
}

const goPath = "/go/bin"

// runner returns one in a folder.
func (w *world) runner(dir string, workflow *actions.Workflow) *actions.Runner {
	return &actions.Runner{
		Workflow: workflow, Source: "repository", Ref: "refs/tags/" + tag, Dir: dir, Path: goPath, Output: io.Discard, Host: w,
		Env: func(_ string, job *actions.Job) ([]string, error) {
			if job.Permissions["id-token"] == "write" {
				return []string{"ACTIONS_ID_TOKEN_REQUEST_TOKEN=request"}, nil
			}
			return nil, nil
		},
		Values: func(_ string, job *actions.Job) (map[string]string, error) {
			granted := ""
			for _, name := range slices.Sorted(maps.Keys(job.Permissions)) {
				granted += name + ":" + job.Permissions[name] + ","
			}
			return map[string]string{"github.actor": "actor", "secrets.GITHUB_TOKEN": granted}, nil
		},
	}
}

// rehearse is what a rehearsal sees of a workflow.
func rehearse(t *testing.T, content []byte) error {
	t.Helper()
	workflow, err := actions.Parse(content)
	if err != nil {
		return err
	}
	if err := actions.Agree(workflow, read(t, top+"/release.mk"), "release-compare"); err != nil {
		return err
	}
	w := &world{places: map[string]string{}}
	if err := w.runner(t.TempDir(), workflow).Run(t.Context()); err != nil {
		return err
	}
	if diff := cmp.Diff(done, w.places); diff != "" {
		return fmt.Errorf("published (-want +got):\n%s", diff)
	}
	return nil
}

// done is what a release leaves.
var done = map[string]string{"publish:" + tag: "content", "image:" + tag: "content", "latest": tag, "GitHub": tag}

// TestReleaseWorkflow takes the steps of release.yml.
func TestReleaseWorkflow(t *testing.T) {
	t.Parallel()
	if err := rehearse(t, read(t, top+"/.github/workflows/release.yml")); err != nil {
		t.Fatal(err)
	}
}

// TestEveryLineOfTheWorkflowCounts breaks release.yml at each place: without a line,
// without a step, with a step that fails or comes later. A rehearsal fails then.
func TestEveryLineOfTheWorkflowCounts(t *testing.T) {
	t.Parallel()
	content := read(t, top+"/.github/workflows/release.yml")
	mutants := actions.Mutants(content)
	for name, mutant := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := rehearse(t, mutant); err == nil {
				t.Errorf("the rehearsal succeeds with this workflow:\n%s", difference(content, mutant))
			}
		})
	}
	if len(mutants) < 150 {
		t.Errorf("only %d ways to break it", len(mutants))
	}
	t.Logf("%d ways to break release.yml", len(mutants))
}

// difference shows where two texts part.
func difference(a, b []byte) string {
	return cmp.Diff(strings.Split(string(a), "\n"), strings.Split(string(b), "\n"))
}

// TestRunAgain loses the machine of each job before each step, runs the job again,
// and then the others: the same is published, and nothing more.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	workflow, err := actions.Parse(read(t, top+"/.github/workflows/release.yml"))
	if err != nil {
		t.Fatal(err)
	}
	order, err := workflow.Order()
	if err != nil {
		t.Fatal(err)
	}
	for _, lost := range order {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			w := &world{places: map[string]string{}}
			r := w.runner(t.TempDir(), workflow)
			for _, name := range order {
				for n := range workflow.Jobs[name].Steps {
					if name != lost {
						break
					}
					if err := r.RunJob(t.Context(), name, n); err != nil {
						t.Fatal(err)
					}
				}
				if err := r.RunJob(t.Context(), name, -1); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(done, w.places); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnknown: what the runner does not know is an error, and so is a step of
// release.mk that no job takes.
func TestUnknown(t *testing.T) {
	t.Parallel()
	content := read(t, top+"/.github/workflows/release.yml")
	makefile := read(t, top+"/release.mk")
	for name, test := range map[string]struct{ old, changed, want string }{
		"a condition":                 {"      - run: make release-attest\n", "      - run: make release-attest\n        if: always()\n", "field if not found"},
		"a continued error":           {"      - run: make release-check\n", "      - run: make release-check\n        continue-on-error: true\n", "field continue-on-error not found"},
		"more permissions":            {"permissions: {}", "permissions: {contents: write}", "permissions of every job"},
		"an action by its tag":        {"@44694675825211faa026b3c33043df3e48a5fa00 # v6.0.0", "@v6", "pin the action by its commit"},
		"a value in the script":       {"run: make release-show", "run: make release-show VERSION=${{ github.ref_name }}", "hand values over in env"},
		"a value of its own":          {"run: make release-publish", "run: make release-publish RELEASE_FLAGS=--insecure-unsigned", "only targets"},
		"more than a target":          {"run: make release-show", "run: make release-show || true", "write it as a target"},
		"a target of its own":         {"run: make release-show", "run: make release-show release-tell", "which release.mk does not have"},
		"kept credentials":            {"persist-credentials: false", "persist-credentials: true", "would stay in .git/config"},
		"an unknown expression":       {"${{ github.actor }}", "${{ github.triggering_actor }}", "has no value here"},
		"an action that is not known": {"actions/upload-artifact@", "actions/upload-something@", "not known here"},
		"an unknown input":            {"          if-no-files-found: error\n", "          overwrite: true\n", "input overwrite is not known"},
		"a job that waits for less":   {"    needs: check\n", "    needs: publish\n", "does not wait for"},
		"shown before it is promoted": {"    needs: promote\n", "    needs: check\n", "does not wait for release-promote"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := bytes.ReplaceAll(content, []byte(test.old), []byte(test.changed))
			if bytes.Equal(changed, content) {
				t.Fatalf("release.yml has no %q", test.old)
			}
			err := rehearse(t, changed)
			if !errors.Is(err, actions.ErrWorkflow) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one with %q", err, test.want)
			}
		})
	}
	workflow, err := actions.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	more := append(slices.Clone(makefile), "\nrelease-tell: ## release: tell everyone\n"...)
	if err := actions.Agree(workflow, more, "release-compare"); err == nil || !strings.Contains(err.Error(), "no job takes the step release-tell") {
		t.Errorf("a step of release.mk that no job takes: %v", err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
