package admission

import (
	"errors"
	"fmt"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
)

// alike stands for refusals with one reason: a release signed in two forms for
// three platforms by somebody else would otherwise say the same twelve times.
type alike struct{ refusals []error }

// Error returns the first refusal and how many more there are of its kind.
func (a *alike) Error() string {
	if more := len(a.refusals) - 1; more > 0 {
		return fmt.Sprintf("%v (and %d more like it)", a.refusals[0], more)
	}
	return a.refusals[0].Error()
}

// Unwrap returns every refusal.
func (a *alike) Unwrap() []error { return a.refusals }

// byReason joins refusals that differ only in where the evidence came from, in
// the order in which the reasons came.
func byReason(refusals []error) []error {
	var reasons []error
	groups := map[string]*alike{}
	for _, err := range refusals {
		reason := err.Error()
		if one := (*trust.Error)(nil); errors.As(err, &one) {
			reason = one.Want + ": " + one.Err.Error()
		}
		group := groups[reason]
		if group == nil {
			group = &alike{}
			groups[reason] = group
			reasons = append(reasons, group)
		}
		group.refusals = append(group.refusals, err)
	}
	return reasons
}
