package admission

import (
	"fmt"
	"slices"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
)

// aged judges once more, by the evidence alone that is proven to be old enough.
// So everything that is asked for was there that long ago, each signature of a
// threshold too: one signer who signs ahead, in secret or in league with a
// thief, makes nothing older. A claim of the signer's own proves no time.
func (r Requirements) aged(v findings, now time.Time) ([]trust.Verified, error) {
	young := func(v trust.Verified) bool { return v.Time().IsZero() || now.Sub(v.Time()) < r.MinimumAge }
	old := findings{seen: v.seen, verified: slices.DeleteFunc(slices.Clone(v.verified), func(v finding) bool { return young(v.Verified) })}
	accepted, err := r.judge(old)
	if err == nil {
		return accepted, nil
	}
	var looked []Looked
	for _, finding := range v.verified {
		what := fmt.Sprintf("%s by %s", finding.Kind(), r.Signers[finding.signer])
		switch {
		case finding.Time().IsZero():
			looked = note(looked, finding.origin, what+": nothing proves when it was made, neither a log nor a timestamp")
		case young(finding.Verified):
			looked = note(looked, finding.origin, fmt.Sprintf("%s: signed %s ago", what, now.Sub(finding.Time()).Round(time.Second)))
		}
	}
	return nil, refuse(looked, nil, "what the rule asks for has not been there for %s, its minimum-age", r.MinimumAge)
}

// checkAge refuses an age that some signer could never prove.
func (r Requirements) checkAge() error {
	if r.MinimumAge < 0 {
		return fmt.Errorf("minimum age %s is below zero", r.MinimumAge)
	}
	if r.MinimumAge == 0 {
		return nil
	}
	for _, s := range r.Signers {
		if !s.ProvesTime() {
			return fmt.Errorf("minimum age %s, but nothing proves when %s signed: give the key a trusted-root, and require-log or require-timestamp", r.MinimumAge, s)
		}
	}
	return nil
}
