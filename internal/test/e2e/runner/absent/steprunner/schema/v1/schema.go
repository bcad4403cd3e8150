// Package schema stands in for step-runner's: it names the parts of a step that
// the runner writes.
package schema

// StepInputs are a step's inputs by name.
type StepInputs map[string]any

// Step is a step of a job.
type Step struct {
	Name   *string    `json:"name,omitempty" yaml:"name,omitempty"`
	Step   any        `json:"step,omitempty" yaml:"step,omitempty"`
	Inputs StepInputs `json:"inputs,omitempty" yaml:"inputs,omitempty"`
	Run    []Step     `json:"run,omitempty" yaml:"run,omitempty"`
}
