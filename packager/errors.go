package packager

import (
	"errors"
	"fmt"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// The errors that callers tell apart with [errors.Is]. Errors of the registry
// are passed on as they are.
var (
	// ErrInput says that what is to be packaged is not as it must be. The error
	// is one or more [*InputError].
	ErrInput = errors.New("input cannot be packaged")
	// ErrVersion says that a version is not MAJOR.MINOR.PATCH[-prerelease].
	ErrVersion = errors.New("invalid version")
	// ErrReference says that a reference cannot be published to.
	ErrReference = errors.New("invalid reference")
	// ErrPublished says that the version is published already, with other
	// content.
	ErrPublished = errors.New("version is published with other content")
	// ErrAliasTaken says that the name of an alias holds something else.
	ErrAliasTaken = errors.New("the alias holds something else")
	// ErrExists says that the output folder holds something else.
	ErrExists = errors.New("output folder is not empty and holds no OCI layout")
	// ErrImmutable says that a tag is on other content, and the registry does not
	// move it.
	ErrImmutable = ociregistry.ErrImmutable
	// ErrNotPlugin says that an artifact is not a fleeting plugin.
	ErrNotPlugin = errors.New("not a fleeting plugin")
)

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
