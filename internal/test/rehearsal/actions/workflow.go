// Package actions runs a workflow of GitHub Actions on this machine: its own steps,
// in its order, each job in a checkout and a home of its own, with the permissions
// that it asks for and nothing else. It knows what our release workflow is made of;
// a key, an action, an input or an expression that it does not know is an error, so
// that nothing of a workflow is passed over in silence.
//
// It is no general runner. What it leaves out: conditions, matrices, services,
// containers, and jobs side by side.
package actions

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrWorkflow reports a workflow that cannot be run here.
var ErrWorkflow = errors.New("workflow")

// Workflow is a file in .github/workflows.
// https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax
type Workflow struct {
	Name        string            `yaml:"name"`
	On          Triggers          `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Concurrency struct {
		Group string `yaml:"group"`
	} `yaml:"concurrency"`
	Jobs map[string]*Job `yaml:"jobs"`
}

// Triggers say what starts a workflow.
type Triggers struct {
	Push struct {
		Tags []string `yaml:"tags"`
	} `yaml:"push"`
}

// Job is one machine's part.
type Job struct {
	Needs       Names             `yaml:"needs"`
	RunsOn      string            `yaml:"runs-on"`
	Timeout     int               `yaml:"timeout-minutes"`
	Permissions map[string]string `yaml:"permissions"`
	Environment string            `yaml:"environment"`
	Steps       []Step            `yaml:"steps"`
}

// Step is an action that is used, or a script.
type Step struct {
	Name string            `yaml:"name"`
	Uses string            `yaml:"uses"`
	With map[string]string `yaml:"with"`
	Run  string            `yaml:"run"`
	Env  map[string]string `yaml:"env"`
}

// String names the step in messages.
func (s Step) String() string {
	if s.Run != "" {
		return strings.TrimSpace(s.Run)
	}
	action, _, _ := strings.Cut(s.Uses, "@")
	return action
}

// Names are one name or a list of them.
type Names []string

// UnmarshalYAML reads both forms.
func (n *Names) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*n = Names{node.Value}
		return nil
	}
	return node.Decode((*[]string)(n))
}

// Parse reads a workflow. The errors are [ErrWorkflow].
func Parse(content []byte) (*Workflow, error) {
	var w Workflow
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&w); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWorkflow, err)
	}
	if w.Permissions == nil || len(w.Permissions) > 0 {
		return nil, fmt.Errorf("%w: permissions of every job: write {} and give each job its own", ErrWorkflow)
	}
	// Of the runs that wait in one group, GitHub cancels all but the last.
	if !strings.Contains(w.Concurrency.Group, "${{ github.ref }}") {
		return nil, fmt.Errorf("%w: concurrency: name the ref in the group, or a release is cancelled by the next", ErrWorkflow)
	}
	for name, job := range w.Jobs {
		if err := job.check(); err != nil {
			return nil, fmt.Errorf("%w: job %s: %w", ErrWorkflow, name, err)
		}
		for _, need := range job.Needs {
			if w.Jobs[need] == nil {
				return nil, fmt.Errorf("%w: job %s needs %s, which is not there", ErrWorkflow, name, need)
			}
		}
	}
	return &w, nil
}

func (j *Job) check() error {
	switch {
	case j == nil || len(j.Steps) == 0:
		return errors.New("no steps")
	case j.Timeout == 0:
		return errors.New("no timeout-minutes")
	case j.RunsOn != "ubuntu-24.04":
		return fmt.Errorf("runs-on %q: this is ubuntu-24.04", j.RunsOn)
	}
	if j.Permissions["id-token"] != "" && j.Environment == "" {
		return errors.New("a job that may sign has an environment, which says for which tags")
	}
	for _, s := range j.Steps {
		if err := s.check(); err != nil {
			return err
		}
	}
	return nil
}

func (s Step) check() error {
	if (s.Uses == "") == (s.Run == "") {
		return fmt.Errorf("step %q: give one of uses and run", s.Name)
	}
	if s.Run != "" && s.With != nil || s.Uses != "" && s.Env != nil {
		return fmt.Errorf("step %s: with is for actions, env for scripts", s)
	}
	// GitHub puts expressions into the text of a script before a shell reads it.
	if strings.Contains(s.Run, "${{") {
		return fmt.Errorf("step %s: hand values over in env, as a shell reads the script", s)
	}
	if s.Uses != "" && !pinned.MatchString(s.Uses) {
		return fmt.Errorf("step %s: pin the action by its commit", s.Uses)
	}
	return nil
}

var pinned = regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40}$`)

// Order returns the names of the jobs, each behind those that it needs. Jobs that
// wait for nothing of each other are in the order of their names.
func (w *Workflow) Order() ([]string, error) {
	var order []string
	left := slices.Sorted(maps.Keys(w.Jobs))
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(name string) bool {
			return !slices.ContainsFunc(w.Jobs[name].Needs, func(need string) bool { return !slices.Contains(order, need) })
		})
		if i < 0 {
			return nil, fmt.Errorf("%w: %v wait for each other", ErrWorkflow, left)
		}
		order, left = append(order, left[i]), slices.Delete(left, i, i+1)
	}
	return order, nil
}

// after returns every job that a job waits for.
func (w *Workflow) after(name string) map[string]bool {
	all := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		for _, need := range w.Jobs[name].Needs {
			all[need] = true
			add(need)
		}
	}
	add(name)
	return all
}

// expressions finds ${{ NAME }}.
var expressions = regexp.MustCompile(`\$\{\{ *([\w.-]+) *\}\}`)

// Fill puts values in place of the expressions of a text.
func Fill(text string, values map[string]string) (string, error) {
	var problem error
	filled := expressions.ReplaceAllStringFunc(text, func(found string) string {
		name := expressions.FindStringSubmatch(found)[1]
		value, ok := values[name]
		if !ok {
			problem = fmt.Errorf("%w: %s has no value here", ErrWorkflow, found)
		}
		return value
	})
	if problem == nil && strings.Contains(filled, "${{") {
		problem = fmt.Errorf("%w: %q is an expression that is not read here", ErrWorkflow, text)
	}
	return filled, problem
}
