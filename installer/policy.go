package installer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// Policy says what a plugin must carry before it may be installed. The zero
// value refuses everything. [NewPolicy] and [ParsePolicy] make one.
type Policy struct {
	rules []compiledRule
	// unsafe admits what no rule is about.
	unsafe bool
}

// Rule is what plugins of one scope must carry. Of several rules that match, the
// one with the longest fixed beginning decides alone; of two with the same, the
// one that does not end in **, then the one with more letters.
type Rule struct {
	// Scope is a name, registry/repository, in which * matches one or part of one
	// element and a last element ** any number of them. It is read as a [Reference]
	// is: docker.io/nginx is index.docker.io/library/nginx.
	Scope string
	// Signers are those whose signature counts; at least one.
	Signers []Signer
	// Threshold is how many different signers are needed; zero means one.
	Threshold int
	// AttestationsSuffice needs no signature beside the attestations, as GitHub's
	// own attestations come without.
	AttestationsSuffice bool
	// Attestations must all be there, by one of Signers.
	Attestations []Attestation
	// MinimumAge is how long ago everything that the rule asks for must have been
	// there, each signature of a threshold too, so that a theft has time to be
	// noticed. Only a log or a timestamp authority proves a time: keys need a Root.
	MinimumAge time.Duration
	// DeniedVersions and DeniedDigests are never installed.
	DeniedVersions []version.Constraint
	// DeniedDigests are of indexes, manifests or layers.
	DeniedDigests []digest.Digest
	// SignatureRepository is a repository, registry/repository, in which signatures
	// and attestations are looked for besides the plugin's own. It needs no trust.
	SignatureRepository string
	// UnsafeUnsigned installs what is in scope without verifying anything but
	// digests. It excludes all fields but Scope and the denied ones.
	UnsafeUnsigned bool
}

// Attestation is an attestation that must be there.
type Attestation struct {
	// PredicateType is a URI, or one of the short names provenance (SLSA
	// provenance v1) and sbom (an SPDX or CycloneDX document).
	PredicateType string
	// Builder, SourceRepository and SourceRef are compared with a SLSA
	// provenance and with the certificate of a keyless signer. SourceRef may
	// have * for any characters.
	Builder, SourceRepository, SourceRef string
}

type compiledRule struct {
	scope        scope
	requirements admission.Requirements
	unsafe       bool
	// signatures is where evidence is besides; zero for nowhere.
	signatures Reference
}

// fingerprint identifies what a rule asks for, so that a receipt shows whether
// that has changed since. Its scope is not part of it: a rule of a policy and one
// of flags may ask for the same.
func (r compiledRule) fingerprint() digest.Digest {
	var b strings.Builder
	q := r.requirements
	fmt.Fprintf(&b, "%v %d %v %s\n", r.unsafe, q.Threshold, q.AttestationsSuffice, q.MinimumAge)
	for _, signer := range q.Signers {
		fmt.Fprintf(&b, "signer %s\n", signer.Fingerprint())
	}
	for _, a := range q.Attestations {
		fmt.Fprintf(&b, "attestation %q %q %q %q\n", a.Types, a.Builder, a.SourceRepository, fmt.Sprint(a.SourceRef))
	}
	for _, denied := range q.DeniedVersions {
		fmt.Fprintf(&b, "denied %q\n", denied)
	}
	for _, denied := range q.DeniedDigests {
		fmt.Fprintf(&b, "denied %q\n", denied)
	}
	return digest.FromString(b.String())
}

// NewPolicy makes a policy of rules. Rules that contradict themselves or each
// other are refused with [ErrInvalid] (policy), all at once.
func NewPolicy(rules ...Rule) (Policy, error) {
	var policy Policy
	var problems []error
	for _, rule := range rules {
		compiled, err := rule.compile()
		if err != nil {
			problems = append(problems, fmt.Errorf("%w: rule for %q: %w", errInvalidPolicy, rule.Scope, err))
			continue
		}
		if same := slices.IndexFunc(policy.rules, func(r compiledRule) bool { return r.scope.pattern == compiled.scope.pattern }); same >= 0 {
			problems = append(problems, fmt.Errorf("%w: two rules for the same names: scope %q and scope %q", errInvalidPolicy, policy.rules[same].scope.text, rule.Scope))
			continue
		}
		policy.rules = append(policy.rules, compiled)
	}
	if err := errors.Join(problems...); err != nil {
		return Policy{}, err
	}
	slices.SortStableFunc(policy.rules, func(a, b compiledRule) int { return a.scope.compare(b.scope) })
	return policy, nil
}

// UnsafeNoVerification is a policy under which everything may be installed,
// signed or not. Only digests are checked: whoever controls the registry
// controls what is installed.
func UnsafeNoVerification() Policy { return Policy{unsafe: true} }

func (r Rule) compile() (compiledRule, error) {
	scope, err := parseScope(r.Scope)
	if err != nil {
		return compiledRule{}, err
	}
	requirements := admission.Requirements{
		Threshold: r.Threshold, AttestationsSuffice: r.AttestationsSuffice, MinimumAge: r.MinimumAge,
		DeniedVersions: slices.Clone(r.DeniedVersions), DeniedDigests: slices.Clone(r.DeniedDigests),
	}
	for _, d := range r.DeniedDigests {
		if err := d.Validate(); err != nil {
			return compiledRule{}, fmt.Errorf("denied digest %q: %w", d, err)
		}
	}
	var signatures Reference
	if r.SignatureRepository != "" {
		if signatures, err = parseSignatureRepository(r.SignatureRepository); err != nil {
			return compiledRule{}, err
		}
	}
	if r.UnsafeUnsigned {
		if len(r.Signers)+len(r.Attestations)+r.Threshold != 0 || r.AttestationsSuffice || r.MinimumAge != 0 || r.SignatureRepository != "" {
			return compiledRule{}, errors.New("unsigned plugins are allowed, so signers, attestations, ages and a signature repository mean nothing")
		}
		return compiledRule{scope: scope, requirements: requirements, unsafe: true}, nil
	}
	if err := r.require(&requirements); err != nil {
		return compiledRule{}, err
	}
	return compiledRule{scope: scope, requirements: requirements, signatures: signatures}, requirements.Check()
}

// require adds the signers and attestations of a rule.
func (r Rule) require(requirements *admission.Requirements) error {
	for _, s := range r.Signers {
		if s.requirement.IsZero() {
			return errors.New("an empty signer")
		}
		requirements.Signers = append(requirements.Signers, s.requirement)
	}
	if n := requirements.Different(); n > 0 && r.Threshold > n && r.Threshold <= len(r.Signers) {
		return fmt.Errorf("threshold %d, but only %d of the keys and identities are different", r.Threshold, n)
	}
	for _, a := range r.Attestations {
		compiled, err := a.compile()
		if err != nil {
			return err
		}
		requirements.Attestations = append(requirements.Attestations, compiled)
	}
	return nil
}

func (a Attestation) compile() (admission.Attestation, error) {
	compiled := admission.Attestation{Builder: a.Builder, SourceRepository: a.SourceRepository}
	switch a.PredicateType {
	case "provenance":
		compiled.Types = []string{artifact.PredicateProvenance}
	case "sbom":
		compiled.Types = []string{artifact.PredicateSPDX, artifact.PredicateCycloneDX}
	case "":
		return admission.Attestation{}, errors.New("an attestation without a predicate type")
	default:
		if !strings.Contains(a.PredicateType, ":") {
			return admission.Attestation{}, fmt.Errorf("predicate type %q is neither a URI nor provenance nor sbom", a.PredicateType)
		}
		compiled.Types = []string{a.PredicateType}
	}
	if a.SourceRef != "" {
		compiled.SourceRef = admission.Wildcard(a.SourceRef)
	}
	if compiled.Conditional() && !slices.Equal(compiled.Types, []string{artifact.PredicateProvenance}) {
		return admission.Attestation{}, fmt.Errorf("builder and source are conditions on provenance, not on %q", a.PredicateType)
	}
	return compiled, nil
}

// ruleFor gives the rule that decides about a name.
func (p Policy) ruleFor(name string) (compiledRule, error) {
	if rules := p.rulesAbout(name); len(rules) > 0 {
		return rules[0], nil
	}
	return compiledRule{}, &NoRuleError{Name: name}
}

// fingerprint identifies what the policy asks of a plugin that has all these
// names.
func (p Policy) fingerprint(names ...string) (digest.Digest, error) {
	var all []string
	for _, name := range names {
		rule, err := p.ruleFor(name)
		if err != nil {
			return "", err
		}
		if one := rule.fingerprint().String(); !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	if len(all) == 1 {
		return digest.Digest(all[0]), nil
	}
	return digest.FromString(strings.Join(all, "\n")), nil
}

// Allows says whether the policy still lets in what is installed, by what its
// receipt says: nil, [NoRuleError], or a refusal that matches [ErrRefused]. Of what
// something else installed it knows nothing, and refuses it.
func (p Policy) Allows(installed Installed) error {
	r := installed.Receipt
	if installed.Foreign {
		return fmt.Errorf("%w: nothing is known about %s", ErrRefused, installed.Dir)
	}
	want, err := p.fingerprint(r.Reference.Name(), r.Name)
	if err != nil {
		return err
	}
	rule, err := p.ruleFor(r.Name)
	switch {
	case err != nil:
		return err
	case r.Verification.Unsafe && !rule.unsafe:
		return fmt.Errorf("%w: it was installed without being verified, and the rule for %s wants evidence", ErrRefused, rule.scope.text)
	case want != r.Verification.Policy:
		return fmt.Errorf("%w: %w", ErrRefused, errOtherPolicy)
	}
	return nil
}

// rulesAbout are the rules whose scope matches a name, the one that decides first.
func (p Policy) rulesAbout(name string) []compiledRule {
	var rules []compiledRule
	for _, rule := range p.rules {
		if rule.scope.matches(name) {
			rules = append(rules, rule)
		}
	}
	if p.unsafe {
		rules = append(rules, compiledRule{scope: anyName(), unsafe: true})
	}
	return rules
}

// NoRuleError is the refusal of a plugin that the policy does not mention. It
// matches [ErrRefused] (no-rule).
type NoRuleError struct {
	// Name is registry/repository.
	Name string
}

// Error says what is missing.
func (e *NoRuleError) Error() string {
	return fmt.Sprintf("%v: %v %s", ErrRefused, errNoRule, e.Name)
}

// Unwrap returns the reason.
func (e *NoRuleError) Unwrap() error { return errNoRule }

// Suggestion is the text to add to policy.toml, for somebody who has the
// publisher's key.
func (e *NoRuleError) Suggestion() string {
	return fmt.Sprintf("[[rule]]\nscope = %q\n\n[[rule.key]]\nfile = \"cosign.pub\"  # the publisher's public key, beside the policy\n", e.Name)
}
