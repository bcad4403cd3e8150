package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
)

// Admission says that one chain may be installed. The zero value says no.
type Admission struct {
	chain    Chain
	version  version.Version
	verified []trust.Verified
	unsafe   bool
	valid    bool
}

// Evidence is what was found for one subject of a chain.
type Evidence struct {
	Subject digest.Digest
	Found   []trust.Evidence
}

// Admit judges the chain by the evidence. Evidence about digests that are not
// subjects of the chain is passed over. Refusals match [ErrRefused], and
// [ErrUnsigned] if there was no evidence; they join the reasons of each piece
// of evidence that did not count.
func (r Requirements) Admit(ctx context.Context, v version.Version, chain Chain, evidence []Evidence, now time.Time) (Admission, error) {
	if err := r.Check(); err != nil {
		return Admission{}, fmt.Errorf("%w: the policy is unusable: %w", ErrRefused, err)
	}
	if len(chain.Subjects()) == 0 {
		return Admission{}, fmt.Errorf("%w: nothing to verify", ErrRefused)
	}
	if err := r.Denied(v, chain); err != nil {
		return Admission{}, err
	}
	verdicts, err := r.verify(ctx, chain, evidence)
	if err != nil {
		return Admission{}, err
	}
	accepted, err := r.signatures(verdicts)
	if err != nil {
		return Admission{}, err
	}
	for _, wanted := range r.Attestations {
		found, err := wanted.find(verdicts)
		if err != nil {
			return Admission{}, err
		}
		accepted = append(accepted, found)
	}
	if err := r.age(chain, accepted, now); err != nil {
		return Admission{}, err
	}
	return Admission{chain: chain, version: v, verified: accepted, valid: true}, nil
}

// Unsafe admits a chain that nobody vouches for.
func Unsafe(v version.Version, chain Chain) (Admission, error) {
	if len(chain.Subjects()) == 0 {
		return Admission{}, fmt.Errorf("%w: nothing to admit", ErrRefused)
	}
	return Admission{chain: chain, version: v, unsafe: true, valid: true}, nil
}

// Check is an error for the zero value.
func (a Admission) Check() error {
	if !a.valid {
		return fmt.Errorf("%w: nothing was verified", ErrRefused)
	}
	return nil
}

// Chain is what was admitted.
func (a Admission) Chain() Chain { return a.chain }

// Version is the version that was admitted.
func (a Admission) Version() version.Version { return a.version }

// Verified is the evidence that decided; empty for an unsafe admission.
func (a Admission) Verified() []trust.Verified { return slices.Clone(a.verified) }

// IsUnsafe says whether nothing was verified, on demand.
func (a Admission) IsUnsafe() bool { return a.unsafe }

// verdicts is all evidence that verified for one of the signers, and why the
// rest did not.
type verdicts struct {
	verified []trust.Verified
	refused  []error
	seen     int
}

// verify tries every piece of evidence against every signer.
func (r Requirements) verify(ctx context.Context, chain Chain, evidence []Evidence) (verdicts, error) {
	var all verdicts
	for _, subject := range chain.Subjects() {
		for _, of := range evidence {
			if of.Subject != subject.Digest {
				continue
			}
			for _, ev := range of.Found {
				if err := ctx.Err(); err != nil {
					return verdicts{}, err
				}
				all.add(ctx, r.Signers, subject.Digest, ev)
			}
		}
	}
	return all, ctx.Err()
}

func (v *verdicts) add(ctx context.Context, signers []trust.Requirement, subject digest.Digest, ev trust.Evidence) {
	v.seen++
	var refusals []error
	for _, signer := range signers {
		verified, err := signer.Verify(ctx, subject, ev)
		if err != nil {
			refusals = append(refusals, err)
			continue
		}
		v.verified = append(v.verified, verified)
		return
	}
	v.refused = append(v.refused, refusals...)
}

// signatures picks one signature per different signer, as many as are needed.
func (r Requirements) signatures(v verdicts) ([]trust.Verified, error) {
	var accepted []trust.Verified
	for _, verified := range v.verified {
		if len(accepted) == r.needed() {
			break
		}
		known := slices.ContainsFunc(accepted, func(a trust.Verified) bool {
			return sameSigner(a.Signer(), verified.Signer())
		})
		if verified.Kind() == trust.KindSignature && !known {
			accepted = append(accepted, verified)
		}
	}
	if len(accepted) == r.needed() {
		return accepted, nil
	}
	if v.seen == 0 {
		return nil, fmt.Errorf("%w: %w; wanted a signature by %s", ErrRefused, ErrUnsigned, r)
	}
	err := fmt.Errorf("%w: %d of %d wanted signatures by %s", ErrRefused, len(accepted), r.needed(), r)
	return nil, errors.Join(append([]error{err}, v.refused...)...)
}

// sameSigner compares what identifies a signer: the key, or who vouched for whom.
func sameSigner(a, b trust.Signer) bool {
	return a.KeyID == b.KeyID && a.Issuer == b.Issuer && a.Subject == b.Subject
}

// age compares the time of the oldest proof, or where none has one, the time
// that the signed manifest claims, with the minimum.
func (r Requirements) age(chain Chain, accepted []trust.Verified, now time.Time) error {
	if r.MinimumAge == 0 {
		return nil
	}
	var signed time.Time
	for _, v := range accepted {
		if t := v.Time(); !t.IsZero() && (signed.IsZero() || t.Before(signed)) {
			signed = t
		}
	}
	if signed.IsZero() {
		created, err := time.Parse(time.RFC3339, chain.Annotation("org.opencontainers.image.created"))
		if err != nil {
			return fmt.Errorf("%w: minimum age %s, but nothing says when it was made", ErrRefused, r.MinimumAge)
		}
		signed = created
	}
	if age := now.Sub(signed); age < r.MinimumAge {
		return fmt.Errorf("%w: signed %s ago, minimum age %s", ErrRefused, age.Round(time.Second), r.MinimumAge)
	}
	return nil
}
