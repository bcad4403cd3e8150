package admission

import (
	"errors"
	"fmt"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
)

// repeatedError stands for refusals with one reason: a release signed in two
// forms for three platforms by somebody else would otherwise say the same twelve
// times.
type repeatedError struct{ refusals []error }

// Error returns the first refusal and how many more there are of its kind.
func (r *repeatedError) Error() string {
	if more := len(r.refusals) - 1; more > 0 {
		return fmt.Sprintf("%v (and %d more like it)", r.refusals[0], more)
	}
	return r.refusals[0].Error()
}

// Unwrap returns every refusal.
func (r *repeatedError) Unwrap() []error { return r.refusals }

// byReason joins refusals that differ only in where the evidence came from, in
// the order in which the reasons came.
func byReason(refusals []error) []error {
	var reasons []error
	groups := map[string]*repeatedError{}
	for _, err := range refusals {
		reason := err.Error()
		if one := (*trust.Error)(nil); errors.As(err, &one) {
			reason = one.Want + ": " + one.Err.Error()
		}
		group := groups[reason]
		if group == nil {
			group = &repeatedError{}
			groups[reason] = group
			reasons = append(reasons, group)
		}
		group.refusals = append(group.refusals, err)
	}
	return reasons
}
