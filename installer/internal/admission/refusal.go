package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
)

// RefusalError is the refusal of a chain whose evidence does not suffice. It matches
// [ErrRefused], and every reason of a piece of evidence.
type RefusalError struct {
	// Why says in a line what is asked for and not there.
	Why string
	// Looked is what was looked at, each reason once.
	Looked []Looked
	causes []error
}

// Looked is evidence that does not count, for one reason.
type Looked struct {
	// Origins are the places that it was found in, in that order.
	Origins []string
	// Why says in a line why it does not count.
	Why string
}

// refuse makes a refusal; causes are further errors that it matches.
func refuse(looked []Looked, causes []error, format string, args ...any) *RefusalError {
	return &RefusalError{Why: fmt.Sprintf(format, args...), Looked: looked, causes: append([]error{ErrRefused}, causes...)}
}

// Error is one line, however much was looked at.
func (r *RefusalError) Error() string {
	parts := []string{fmt.Sprintf("%v: %s", ErrRefused, r.Why)}
	for _, looked := range r.Looked {
		parts = append(parts, looked.String())
	}
	return strings.Join(parts, "; ")
}

// Unwrap gives everything that the refusal matches.
func (r *RefusalError) Unwrap() []error { return r.causes }

// String is the reason behind the first place, and how many more there are.
func (l Looked) String() string {
	switch len(l.Origins) {
	case 0:
		return l.Why
	case 1:
		return l.Origins[0] + ": " + l.Why
	}
	return fmt.Sprintf("%s and %d more: %s", l.Origins[0], len(l.Origins)-1, l.Why)
}

// note adds an origin to those with the same reason: a release signed in two
// forms for three platforms by somebody else would otherwise say the same twelve
// times.
func note(looked []Looked, origin, reason string) []Looked {
	reason = strings.ReplaceAll(strings.TrimPrefix(reason, ErrRefused.Error()+": "), "\n", "; ")
	at := slices.IndexFunc(looked, func(l Looked) bool { return l.Why == reason })
	if at < 0 {
		at = len(looked)
		looked = append(looked, Looked{Why: reason})
	}
	if origin != "" && !slices.Contains(looked[at].Origins, origin) {
		looked[at].Origins = append(looked[at].Origins, origin)
	}
	return looked
}

// lookedAt sorts the refusals of pieces of evidence by their reasons, in the
// order in which these came.
func lookedAt(refusals []error) []Looked {
	var looked []Looked
	for _, err := range refusals {
		origin, reason := "", err
		if one, ok := errors.AsType[*trust.Error](err); ok {
			origin, reason = one.Origin, one.Err
		}
		looked = note(looked, origin, reason.Error())
	}
	return looked
}
