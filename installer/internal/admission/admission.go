package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

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

// Evaluation collects evidence about one chain and judges each piece once: anybody
// who may push to a repository can attach hundreds. It is not for concurrent use.
type Evaluation struct {
	requirements Requirements
	version      version.Version
	chain        Chain
	findings     findings
}

// Evaluate begins an evaluation. It refuses at once what no evidence could save; such
// refusals match [ErrRefused].
func (r Requirements) Evaluate(v version.Version, chain Chain) (*Evaluation, error) {
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("%w: the policy is unusable: %w", ErrRefused, err)
	}
	if len(chain.Subjects()) == 0 {
		return nil, fmt.Errorf("%w: nothing to verify", ErrRefused)
	}
	if err := r.Denied(v, chain); err != nil {
		return nil, err
	}
	return &Evaluation{requirements: r, version: v, chain: chain}, nil
}

// Add verifies evidence, and says whether it verified for one of the signers: only
// then a decision may be another one than before. Evidence about a digest that is
// not a subject of the chain is passed over.
func (e *Evaluation) Add(ctx context.Context, subject digest.Digest, found trust.Evidence) bool {
	if !slices.ContainsFunc(e.chain.Subjects(), func(d ocispec.Descriptor) bool { return d.Digest == subject }) {
		return false
	}
	before := len(e.findings.verified)
	e.findings.add(ctx, e.requirements.Signers, subject, found)
	return len(e.findings.verified) > before
}

// Decide judges by the evidence so far. Refusals match [ErrRefused], and
// [ErrUnsigned] if there was no evidence; a [RefusalError] has what was looked at.
func (e *Evaluation) Decide(now time.Time) (Admission, error) {
	accepted, err := e.requirements.judge(e.findings)
	if err != nil {
		return Admission{}, err
	}
	if e.requirements.MinimumAge > 0 {
		if accepted, err = e.requirements.aged(e.findings, now); err != nil {
			return Admission{}, err
		}
	}
	return Admission{chain: e.chain, version: e.version, verified: accepted, valid: true}, nil
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

// findings is all evidence that verified for one of the signers, and why the
// rest did not.
type findings struct {
	verified []finding
	refused  []error
	seen     int
}

// finding is evidence that verified, for which of the required signers, and
// where it was found.
type finding struct {
	trust.Verified
	signer int
	origin string
}

// add tries a piece of evidence against every signer.
func (v *findings) add(ctx context.Context, signers []trust.Requirement, subject digest.Digest, ev trust.Evidence) {
	v.seen++
	var refusals []error
	for i, signer := range signers {
		verified, err := signer.Verify(ctx, subject, ev)
		if err != nil {
			refusals = append(refusals, err)
			continue
		}
		v.verified = append(v.verified, finding{verified, i, ev.Origin})
	}
	if len(refusals) == len(signers) {
		v.refused = append(v.refused, refusals...)
	}
}

// judge picks the evidence that meets the requirements, apart from its age.
func (r Requirements) judge(v findings) ([]trust.Verified, error) {
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

// signatures picks as many signatures, or what counts as one, as are needed, of
// different identities for different required signers: one pattern that two
// identities match is one required signer, and one key that two entries name is
// one identity.
func (r Requirements) signatures(v findings) ([]trust.Verified, error) {
	var identities []trust.Verified
	var passed []Looked
	choices := make([][]int, len(r.Signers))
	for _, finding := range v.verified {
		ok, reason := r.counts(finding.Verified)
		if reason != nil {
			passed = note(passed, finding.origin, reason.Error())
		}
		if !ok {
			continue
		}
		identity := slices.IndexFunc(identities, func(p trust.Verified) bool { return sameSigner(p.Signer(), finding.Signer()) })
		if identity < 0 {
			identity = len(identities)
			identities = append(identities, finding.Verified)
		}
		choices[finding.signer] = append(choices[finding.signer], identity)
	}
	var accepted []trust.Verified
	for _, identity := range matchSigners(choices) {
		if len(accepted) < r.needed() {
			accepted = append(accepted, identities[identity])
		}
	}
	if len(accepted) == r.needed() {
		return accepted, nil
	}
	return nil, r.unsigned(v, accepted, passed)
}

// unsigned says what is there in place of the signatures that are wanted. Passed
// is evidence that verified and does not count as one.
func (r Requirements) unsigned(v findings, accepted []trust.Verified, passed []Looked) error {
	what, none := "signature", ErrUnsigned
	if r.provenances != nil {
		what, none = "provenance", ErrNotAttested
	}
	if v.seen == 0 {
		return refuse(nil, []error{none}, "%v; wanted a %s by %s", none, what, r.names())
	}
	var looked []Looked
	for _, one := range accepted {
		looked = note(looked, "", "signed by "+one.Signer().String())
	}
	if r.provenances == nil && len(v.verified) > 0 && len(accepted) == 0 {
		looked = note(looked, "", "there are attestations by "+v.verified[0].Signer().String()+", but no signature; attestations-suffice in the rule asks for none")
	}
	looked = slices.Concat(looked, passed, lookedAt(v.refused))
	if r.needed() == 1 {
		return refuse(looked, v.refused, "no %s by %s", what, r.names())
	}
	return refuse(looked, v.refused, "%d of %d wanted %ss by %s", len(accepted), r.needed(), what, r.names())
}

// matchSigners gives each required signer an identity of its choices, each
// identity to one signer, for as many signers as possible (a maximum bipartite
// matching, by augmenting paths), and returns the identities.
func matchSigners(choices [][]int) []int {
	signerOf := map[int]int{}
	var place func(signer int, asked map[int]bool) bool
	place = func(signer int, asked map[int]bool) bool {
		for _, identity := range choices[signer] {
			if asked[identity] {
				continue
			}
			asked[identity] = true
			if holder, taken := signerOf[identity]; !taken || place(holder, asked) {
				signerOf[identity] = signer
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
