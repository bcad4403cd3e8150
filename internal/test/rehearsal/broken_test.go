//go:build rehearsal

package rehearsal_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/rehearsal/actions"
)

// breaks runs a job, and those after it, by workflows that are broken in that job.
// Each of them has to fail. Users must see nothing of it: what is published when the
// job begins stays as it is, and so does what GitHub shows.
// Those that are refused before anything runs are left to package actions.
func (r *rehearsed) breaks(t *testing.T, job string) {
	t.Helper()
	whole, content := r.runner.Workflow, read(t, filepath.Join(r.source, ".github", "workflows", "release.yml"))
	defer func() { r.runner.Workflow = whole }()
	before, shown := r.published(t), r.github.state()
	// A higher version is there, whose tag a shallow checkout lacks: what is shown is
	// not the latest release.
	git(t, r.source, "tag", "v9999.0.0", "HEAD^")
	defer git(t, r.source, "tag", "--delete", "v9999.0.0")
	mutants := actions.Mutants(content)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(mutants)), func(name string) bool {
		return !strings.HasPrefix(name, job+": ") || r.readable(t, mutants[name]) == nil
	})
	names = some(t, names)
	for _, name := range names {
		r.runner.Workflow = r.readable(t, mutants[name])
		if job == "publish" {
			r.runner.Keep("build", "rebuild")
		}
		err := r.from(t, job)
		if err == nil && r.github.forget() == r.tag {
			err = errors.New("GitHub shows it as the latest release, and it is not")
		}
		if err == nil {
			t.Errorf("the rehearsal succeeds %s", name)
		}
		line, _, _ := strings.Cut(fmt.Sprint(err), "\n")
		t.Logf("broken: %s: %s", name, line)
		if job == "publish" {
			continue
		}
		if diff := cmp.Diff(before, r.published(t)) + cmp.Diff(shown, r.github.state()); diff != "" {
			t.Errorf("%s has changed what users see (-before +after):\n%s", name, diff)
		}
	}
	t.Logf("broken: %s: %d ways", job, len(names))
}

// some returns as many names as REHEARSAL_MUTANTS says, spread evenly; without it
// all of them.
func some(t *testing.T, names []string) []string {
	t.Helper()
	text := os.Getenv("REHEARSAL_MUTANTS")
	if text == "" {
		return names
	}
	limit, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("REHEARSAL_MUTANTS: %v", err)
	}
	limit = min(limit, len(names))
	chosen := make([]string, limit)
	for n := range chosen {
		chosen[n] = names[n*len(names)/limit]
	}
	return chosen
}

// readable returns a workflow that may be run, nil if it may not.
func (r *rehearsed) readable(t *testing.T, content []byte) *actions.Workflow {
	t.Helper()
	workflow, err := actions.Parse(content)
	if err == nil {
		err = actions.Agree(workflow, read(t, filepath.Join(r.source, "release.mk")), "release-compare")
	}
	if err != nil {
		return nil
	}
	return workflow
}

// from runs a job and those after it.
func (r *rehearsed) from(t *testing.T, job string) error {
	t.Helper()
	order, err := r.runner.Workflow.Order()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range order[slices.Index(order, job):] {
		if err := r.runner.RunJob(t.Context(), name, -1); err != nil {
			return err
		}
	}
	return nil
}
