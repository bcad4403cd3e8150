package dist

import (
	"errors"
	"fmt"
)

// ErrInput reports that what is to be packaged is not as it must be. The error is
// one or more [*InputError].
var ErrInput = errors.New("input cannot be packaged")

// InputError is one thing that is wrong with what is to be packaged. It wraps
// [ErrInput].
type InputError struct {
	// Path of the file or folder, or the flag's value, that is wrong.
	Path string
	// Problem says what is wrong.
	Problem string
	// Remedy says what to do about it; may be empty.
	Remedy string
	// Err is the cause, if there is one.
	Err error
}

// Error returns path and problem, without the remedy.
func (e *InputError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Path, e.Problem, e.Err)
	}
	return e.Path + ": " + e.Problem
}

// Unwrap returns [ErrInput] and the cause.
func (e *InputError) Unwrap() []error {
	if e.Err != nil {
		return []error{ErrInput, e.Err}
	}
	return []error{ErrInput}
}

// Warning is something that the publisher should know and that does not stop
// the release.
type Warning struct {
	// Subject is the file, folder or registry that the warning is about.
	Subject string `json:"subject"`
	// Message says what was found and what follows from it.
	Message string `json:"message"`
}

// String returns "subject: message".
func (w Warning) String() string { return w.Subject + ": " + w.Message }
