package actions

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Action is a composite action of GitHub that has one script.
// https://docs.github.com/en/actions/reference/workflows-and-actions/metadata-syntax
type Action struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Branding    struct {
		Icon  string `yaml:"icon"`
		Color string `yaml:"color"`
	} `yaml:"branding"`
	Inputs map[string]struct {
		Description string `yaml:"description"`
		Default     string `yaml:"default"`
		Required    bool   `yaml:"required"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Description string `yaml:"description"`
		Value       string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string `yaml:"using"`
		Steps []struct {
			ID    string            `yaml:"id"`
			Uses  string            `yaml:"uses"`
			With  map[string]string `yaml:"with"`
			Shell string            `yaml:"shell"`
			Run   string            `yaml:"run"`
			Env   map[string]string `yaml:"env"`
		} `yaml:"steps"`
	} `yaml:"runs"`
}

// ParseAction reads an action.yml. The errors are [ErrWorkflow].
func ParseAction(content []byte) (*Action, error) {
	var a Action
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&a); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWorkflow, err)
	}
	return &a, nil
}

// Script returns the script of the action, and its variables, for inputs and the
// values of other expressions. Steps that use other actions are not taken: that
// sets up Go.
func (a *Action) Script(with, values map[string]string) (script string, env map[string]string, err error) {
	all, problems := a.given(with, values)
	env = map[string]string{}
	for _, s := range a.Runs.Steps {
		if s.Run == "" {
			if s.Uses == "" || !pinned.MatchString(s.Uses) {
				problems = append(problems, fmt.Errorf("%w: step %q: pin the action by its commit", ErrWorkflow, s.Uses))
			}
			continue
		}
		if script != "" || s.Shell != "bash" || strings.Contains(s.Run, "${{") {
			problems = append(problems, fmt.Errorf("%w: step %q: want one script for bash, with its values in env", ErrWorkflow, s.Run))
		}
		script = s.Run
		for name, value := range s.Env {
			env[name], err = Fill(value, all)
			problems = append(problems, err)
		}
	}
	return script, env, errors.Join(problems...)
}

// given returns values, and those of the inputs, with what is wrong with these.
func (a *Action) given(with, values map[string]string) (all map[string]string, problems []error) {
	all = map[string]string{}
	maps.Copy(all, values)
	for name, input := range a.Inputs {
		value, given := with[name]
		if !given {
			var err error
			value, err = Fill(input.Default, values)
			problems = append(problems, err)
		}
		if !given && input.Required {
			problems = append(problems, fmt.Errorf("%w: input %s is required", ErrWorkflow, name))
		}
		all["inputs."+name] = value
	}
	for name := range with {
		if _, ok := a.Inputs[name]; !ok {
			problems = append(problems, fmt.Errorf("%w: no input %s", ErrWorkflow, name))
		}
	}
	return all, problems
}

var componentInput = regexp.MustCompile(`\$\[\[ inputs\.([a-z-]+) \]\]`)

// Component returns the script of a job of a GitLab component, and its variables,
// for inputs and GitLab's own variables.
// https://docs.gitlab.com/ci/components/
func Component(content []byte, job string, with, variables map[string]string) (script string, env map[string]string, err error) {
	header, body, found := strings.Cut(string(content), "\n---\n")
	if !found {
		return "", nil, fmt.Errorf("%w: the component has no header", ErrWorkflow)
	}
	var spec struct {
		Spec struct {
			Inputs map[string]struct {
				Default *string `yaml:"default"`
			} `yaml:"inputs"`
		} `yaml:"spec"`
	}
	if err := yaml.Unmarshal([]byte(header), &spec); err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrWorkflow, err)
	}
	var problems []error
	// GitLab puts inputs into the text, and reads that.
	filled := componentInput.ReplaceAllStringFunc(body, func(found string) string {
		name := componentInput.FindStringSubmatch(found)[1]
		input, declared := spec.Spec.Inputs[name]
		value, given := with[name]
		switch {
		case !declared:
			problems = append(problems, fmt.Errorf("%w: no input %s", ErrWorkflow, name))
		case !given && input.Default == nil:
			problems = append(problems, fmt.Errorf("%w: input %s is required", ErrWorkflow, name))
		case !given:
			value = *input.Default
		}
		return value
	})
	for name := range with {
		if _, ok := spec.Spec.Inputs[name]; !ok {
			problems = append(problems, fmt.Errorf("%w: no input %s", ErrWorkflow, name))
		}
	}
	var jobs map[string]struct {
		Variables map[string]string `yaml:"variables"`
		Script    []string          `yaml:"script"`
	}
	if err := yaml.Unmarshal([]byte(filled), &jobs); err != nil {
		problems = append(problems, fmt.Errorf("%w: %w", ErrWorkflow, err))
	}
	env = map[string]string{}
	maps.Copy(env, variables)
	for name, value := range jobs[job].Variables {
		env[name] = os.Expand(value, func(name string) string { return variables[name] })
	}
	if len(jobs[job].Script) == 0 {
		problems = append(problems, fmt.Errorf("%w: no job %s with a script", ErrWorkflow, job))
	}
	return strings.Join(jobs[job].Script, "\n"), env, errors.Join(problems...)
}
