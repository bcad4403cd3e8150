// Package client stands in for step-runner's: it names what a job that is made of
// steps asks for and how it ends, and holds nothing that could run one.
package client

import "time"

// Variable is a variable of a job.
type Variable struct {
	Key, Value   string
	File, Masked bool
}

// RunRequest asks for the steps of a job.
type RunRequest struct {
	Id, WorkDir, BuildDir string
	Timeout               *time.Duration
	Env                   map[string]string
	Steps                 string
	Variables             []Variable
}

// State is how a job of steps ended.
type State int

// String is the state's number.
func (s State) String() string { return string(rune('0' + s)) }

// ErrorKind is why a job of steps failed.
type ErrorKind int

// The states that the runner tells apart.
const (
	StateSuccess State = iota + 1
	StateCancelled
)

// The errors that the runner tells apart.
const (
	ErrorUnknown ErrorKind = iota
	ErrorInternal
	ErrorStepFailure
	ErrorCancelled
	ErrorTimeout
)

// Status is how a job of steps ended, and why.
type Status struct {
	State     State
	ErrorKind ErrorKind
	Message   string
}
