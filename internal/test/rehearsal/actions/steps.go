package actions

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// declared finds the steps in release.mk.
var declared = regexp.MustCompile(`(?m)^(release-[a-z-]+):[^=\n]*## release: `)

// taken is a target that a job makes.
type taken struct {
	target, job string
	// at is the number of the step in the job.
	at int
}

// Agree says whether a workflow takes the steps that release.mk declares, all of
// them and no others: within a job in the order of release.mk, and from first on
// only when every step before is done, in whichever job. first is where machines
// come together. A step that only one of the two has is an error.
func Agree(w *Workflow, makefile []byte, first string) error {
	var steps []string
	for _, match := range declared.FindAllSubmatch(makefile, -1) {
		steps = append(steps, string(match[1]))
	}
	from := slices.Index(steps, first)
	if from < 0 {
		return fmt.Errorf("%w: release.mk has no step %s", ErrWorkflow, first)
	}
	all, err := w.targets()
	if err != nil {
		return err
	}
	for _, step := range steps {
		if !slices.ContainsFunc(all, func(t taken) bool { return t.target == step }) {
			return fmt.Errorf("%w: no job takes the step %s of release.mk", ErrWorkflow, step)
		}
	}
	return w.inOrder(all, steps, from)
}

// inOrder says whether all that is taken is of steps, and waits for what comes
// before it there.
func (w *Workflow) inOrder(all []taken, steps []string, from int) error {
	for _, later := range all {
		n := slices.Index(steps, later.target)
		if n < 0 && strings.HasPrefix(later.target, "release-") {
			return fmt.Errorf("%w: job %s takes the step %s, which release.mk does not have", ErrWorkflow, later.job, later.target)
		}
		for _, earlier := range all {
			e := slices.Index(steps, earlier.target)
			if e < 0 || e >= n {
				continue
			}
			if before := w.after(later.job)[earlier.job]; earlier.job == later.job && earlier.at > later.at || earlier.job != later.job && n >= from && !before {
				return fmt.Errorf("%w: job %s takes the step %s, but does not wait for %s of job %s", ErrWorkflow, later.job, later.target, earlier.target, earlier.job)
			}
		}
	}
	return nil
}

// targets returns what the jobs make. A script that is no call of make is an error:
// the rehearsal would not know what it does.
func (w *Workflow) targets() ([]taken, error) {
	order, err := w.Order()
	if err != nil {
		return nil, err
	}
	var all []taken
	for _, job := range order {
		for i, s := range w.Jobs[job].Steps {
			if s.Run == "" {
				continue
			}
			words := strings.Fields(s.Run)
			if len(words) == 0 || words[0] != "make" || strings.ContainsAny(s.Run, ";|&<>$`(){}\n") {
				return nil, fmt.Errorf("%w: job %s: %q: write it as a target of release.mk, which can be rehearsed", ErrWorkflow, job, s.Run)
			}
			words = words[1:]
			if len(words) > 2 && words[0] == "-C" {
				words = words[2:]
			}
			for _, target := range words {
				if strings.ContainsAny(target, "=-") && !strings.HasPrefix(target, "release-") {
					return nil, fmt.Errorf("%w: job %s: %q: only targets; what release.mk needs is its own default", ErrWorkflow, job, s.Run)
				}
				all = append(all, taken{target, job, i})
			}
		}
	}
	return all, nil
}
