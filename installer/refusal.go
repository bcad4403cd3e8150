package installer

import (
	"errors"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
)

// RefusedError is the refusal of an artifact whose evidence does not suffice. It
// matches [ErrRefused]; [Reasons] returns the reasons of all evidence that was
// looked at. Its text is one line; the fields are for those who have more room.
type RefusedError struct {
	// Why says in one line what the rule asks for that is not there.
	Why string
	// Looked is the evidence that was looked at and does not count, each reason
	// once; empty if there was none.
	Looked []RefusedEvidence

	err error
}

// RefusedEvidence is evidence that does not count, for one reason.
type RefusedEvidence struct {
	// Origins say where it was found: "tag TAG" or "referrer DIGEST". Empty for
	// what is about no single piece.
	Origins []string
	// Why says in one line why it does not count.
	Why string
}

// String is the reason behind the first origin, and how many more there are.
func (e RefusedEvidence) String() string { return admission.Looked(e).String() }

// Error is the reason and the evidence, in one line.
func (e *RefusedError) Error() string { return e.err.Error() }

// Unwrap gives what the refusal matches.
func (e *RefusedError) Unwrap() error { return e.err }

// refusedError gives the public form of a refusal; other errors stay as they are.
func refusedError(err error) error {
	refusal, ok := errors.AsType[*admission.RefusalError](err)
	if !ok {
		return err
	}
	public := &RefusedError{Why: refusal.Why, err: err}
	for _, looked := range refusal.Looked {
		public.Looked = append(public.Looked, RefusedEvidence(looked))
	}
	return public
}
