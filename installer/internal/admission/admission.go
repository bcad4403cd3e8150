package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// Evidence is what was found about one digest.
type Evidence struct {
	Subject digest.Digest
	Found   []trust.Evidence
}

// Hearing collects evidence about one chain and judges each piece once: anybody
// who may push to a repository can attach hundreds. It is not for concurrent use.
type Hearing struct {
	requirements Requirements
	version      version.Version
	chain        Chain
	verdicts     verdicts
}

// Hear begins a hearing. It refuses at once what no evidence could save; such
// refusals match [ErrRefused].
func (r Requirements) Hear(v version.Version, chain Chain) (*Hearing, error) {
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("%w: the policy is unusable: %w", ErrRefused, err)
	}
	if len(chain.Subjects()) == 0 {
		return nil, fmt.Errorf("%w: nothing to verify", ErrRefused)
	}
	if err := r.Denied(v, chain); err != nil {
		return nil, err
	}
	return &Hearing{requirements: r, version: v, chain: chain}, nil
}

// Add verifies evidence. Evidence about a digest that is not a subject of the
// chain is passed over. The error is the context's only.
func (h *Hearing) Add(ctx context.Context, evidence Evidence) error {
	for _, subject := range h.chain.Subjects() {
		if evidence.Subject != subject.Digest {
			continue
		}
		for _, ev := range evidence.Found {
			if err := ctx.Err(); err != nil {
				return err
			}
			h.verdicts.add(ctx, h.requirements.Signers, subject.Digest, ev)
		}
	}
	return ctx.Err()
}

// Decide judges by the evidence so far. Refusals match [ErrRefused], and
// [ErrUnsigned] if there was no evidence; they join the reasons of each piece
// of evidence that did not count.
func (h *Hearing) Decide(now time.Time) (Admission, error) {
	accepted, err := h.requirements.judge(h.verdicts)
	if err != nil {
		return Admission{}, err
	}
	if h.requirements.MinimumAge > 0 {
		if accepted, err = h.requirements.aged(h.verdicts, now); err != nil {
			return Admission{}, err
		}
	}
	return Admission{chain: h.chain, version: h.version, verified: accepted, valid: true}, nil
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
	verified []vote
	refused  []error
	seen     int
}

// vote is evidence that verified, and for which of the required signers.
type vote struct {
	trust.Verified
	signer int
}

// add tries a piece of evidence against every signer.
func (v *verdicts) add(ctx context.Context, signers []trust.Requirement, subject digest.Digest, ev trust.Evidence) {
	v.seen++
	var refusals []error
	for i, signer := range signers {
		verified, err := signer.Verify(ctx, subject, ev)
		if err != nil {
			refusals = append(refusals, err)
			continue
		}
		v.verified = append(v.verified, vote{verified, i})
	}
	if len(refusals) == len(signers) {
		v.refused = append(v.refused, refusals...)
	}
}

// judge picks the evidence that meets the requirements, apart from its age.
func (r Requirements) judge(v verdicts) ([]trust.Verified, error) {
	accepted, err := r.signatures(v)
	if err != nil {
		return nil, err
	}
	for _, wanted := range r.Attestations {
		found, err := wanted.find(v)
		if err != nil {
			return nil, err
		}
		accepted = append(accepted, found)
	}
	return accepted, nil
}

// signatures picks as many signatures as are needed, of different people for
// different required signers: one pattern that two identities match is one
// required signer, and one key that two entries name is one person.
func (r Requirements) signatures(v verdicts) ([]trust.Verified, error) {
	var people []trust.Verified
	choices := make([][]int, len(r.Signers))
	for _, vote := range v.verified {
		if vote.Kind() != trust.KindSignature {
			continue
		}
		person := slices.IndexFunc(people, func(p trust.Verified) bool { return sameSigner(p.Signer(), vote.Signer()) })
		if person < 0 {
			person = len(people)
			people = append(people, vote.Verified)
		}
		choices[vote.signer] = append(choices[vote.signer], person)
	}
	var accepted []trust.Verified
	for _, person := range pairs(choices) {
		if len(accepted) < r.needed() {
			accepted = append(accepted, people[person])
		}
	}
	if len(accepted) == r.needed() {
		return accepted, nil
	}
	if v.seen == 0 {
		return nil, fmt.Errorf("%w: %w; wanted a signature by %s", ErrRefused, ErrUnsigned, r)
	}
	err := fmt.Errorf("%w: %d of %d wanted signatures by %s", ErrRefused, len(accepted), r.needed(), r)
	return nil, errors.Join(append([]error{err}, byReason(v.refused)...)...)
}

// pairs gives each signer a person of its choices, each person to one signer,
// for as many signers as possible (augmenting paths), and returns the persons.
func pairs(choices [][]int) []int {
	signerOf := map[int]int{}
	var place func(signer int, asked map[int]bool) bool
	place = func(signer int, asked map[int]bool) bool {
		for _, person := range choices[signer] {
			if asked[person] {
				continue
			}
			asked[person] = true
			if holder, taken := signerOf[person]; !taken || place(holder, asked) {
				signerOf[person] = signer
				return true
			}
		}
		return false
	}
	for signer := range choices {
		place(signer, map[int]bool{})
	}
	return slices.Sorted(maps.Keys(signerOf))
}

// sameSigner compares what identifies a signer: the key, or who vouched for whom.
func sameSigner(a, b trust.Signer) bool {
	return a.KeyID == b.KeyID && a.Issuer == b.Issuer && a.Subject == b.Subject
}
