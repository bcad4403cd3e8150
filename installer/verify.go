package installer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/evidence"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/store"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
)

// Verification says why an artifact may be installed. It is what receipts and
// locks keep, and what programs read.
type Verification struct {
	// Unsafe says that the policy let it through unverified.
	Unsafe bool `json:"unsafe,omitempty"`
	// Rule is the scope of the rule that decided, AsRule that of the name that it
	// is installed under, where that is another. Policy is a fingerprint of what
	// they asked for.
	Rule   string        `json:"rule"`
	AsRule string        `json:"asRule,omitempty"`
	Policy digest.Digest `json:"policy"`
	// Covers is the digest that the evidence vouches for: that of the index, and so
	// of what it has for all platforms, or that of the manifest for one platform,
	// which says nothing about the others. Empty if Unsafe.
	Covers digest.Digest `json:"covers,omitempty"`
	// Evidence is what decided, at least one piece unless Unsafe.
	Evidence []Evidence `json:"evidence,omitempty"`
}

// withoutNames leaves out what rules are called: the same demands of a policy file
// and of a flag are one decision.
func (v Verification) withoutNames() Verification {
	v.Rule, v.AsRule = "", ""
	return v
}

// Evidence is a verified signature or attestation. Fields that do not apply are
// left out.
type Evidence struct {
	// Kind is signature or attestation.
	Kind string `json:"kind"`
	// Format is how it was stored.
	Format string `json:"format"`
	// Subject is the digest that was signed.
	Subject digest.Digest `json:"subject"`
	// PredicateType says what an attestation is about.
	PredicateType string `json:"predicateType,omitempty"`
	// KeyID is the SHA-256 of the public key in DER form, for keys.
	KeyID string `json:"keyId,omitempty"`
	// Issuer and Identity are the certificate's, for keyless signatures, and so
	// are the fields below.
	Issuer           string `json:"issuer,omitempty"`
	Identity         string `json:"identity,omitempty"`
	SourceRepository string `json:"sourceRepository,omitempty"`
	SourceRef        string `json:"sourceRef,omitempty"`
	SourceDigest     string `json:"sourceDigest,omitempty"`
	Workflow         string `json:"workflow,omitempty"`
	Run              string `json:"run,omitempty"`
	// LogIndex is the place in the transparency log.
	LogIndex *int64 `json:"logIndex,omitempty"`
	// Time is the earliest proven time of the signature.
	Time *time.Time `json:"time,omitempty"`
}

// same says whether two pieces of evidence say the same.
func (e Evidence) same(other Evidence) bool { return reflect.DeepEqual(e, other) }

// Signer is one line that says who signed.
func (e Evidence) Signer() string {
	if e.Issuer != "" {
		return e.Identity + " (" + e.Issuer + ")"
	}
	return "key " + e.KeyID
}

// Signers gives each signer once, in the order of the evidence.
func (v Verification) Signers() []string {
	var signers []string
	seen := map[string]bool{}
	for _, e := range v.Evidence {
		if s := e.Signer(); !seen[s] {
			seen[s] = true
			signers = append(signers, s)
		}
	}
	return signers
}

// Verified is a resolution that the policy allows. Only [Installer.Verify] makes
// one that can be installed, by [Installer.InstallVerified]; its fields are for
// showing, and what is written into them changes nothing about that.
type Verified struct {
	Resolution
	// Verification says why.
	Verification Verification `json:"verification"`

	admission admission.Admission
	// unavailable is why evidence about the index could not be fetched, where that
	// about the manifest was enough.
	unavailable error
	// sealed is the value as it was made, nil in that itself.
	sealed *Verified
}

// seal keeps the value as it is now.
func (v Verified) seal() Verified {
	kept := v
	kept.Verification.Evidence = slices.Clone(v.Verification.Evidence)
	v.sealed = &kept
	return v
}

// accepts gives what was verified, if it was under this installer's policy, as it
// is for the reference, and for its platform.
func (i *Installer) accepts(v Verified) (Verified, error) {
	if v.sealed == nil {
		return Verified{}, fmt.Errorf("%w: it was not verified", ErrRefused)
	}
	kept := *v.sealed
	policy, err := i.policy.fingerprint(kept.Reference.Name())
	if err != nil {
		return Verified{}, err
	}
	if policy != kept.Verification.Policy {
		return Verified{}, fmt.Errorf("%w: it was verified under another policy", ErrRefused)
	}
	if !i.runs(Installed{Receipt: Receipt{Platform: kept.Platform}}) {
		return Verified{}, fmt.Errorf("%w: it was verified for %s, want %s", errNoPlatform, kept.Platform, i.platform)
	}
	return kept, nil
}

// Verify resolves a reference and holds it against the policy. It reads
// manifests, signatures and attestations, no layers, and changes nothing.
//
// The answer is for the installer's platform: evidence about that one's manifest
// is enough, and then [Verified.Digest] is the manifest's, not the index's. See
// [Installer.VerifyAllPlatforms].
//
// Beside the errors of [Installer.Resolve]: refusals match [ErrRefused]. A
// signature that could not be fetched is [ErrEvidence], with the registry's
// error; it is never taken for a missing one.
func (i *Installer) Verify(ctx context.Context, ref Reference) (Verified, error) {
	return i.verifyBy(ctx, ref, pick)
}

func (i *Installer) verifyBy(ctx context.Context, ref Reference, choose chooser) (Verified, error) {
	rule, err := i.policy.ruleFor(ref.Name())
	if err != nil {
		return Verified{}, failed("verifying", ref.String(), err)
	}
	resolution, err := i.resolveBy(ctx, ref, choose)
	if err != nil {
		return Verified{}, err
	}
	admitted, unavailable, err := i.admit(ctx, resolution, rule)
	if err != nil {
		return Verified{}, failed("verifying", exactly(resolution), err)
	}
	verified := Verified{
		Resolution: resolution, Verification: describeAdmission(rule, resolution, admitted), admission: admitted, unavailable: unavailable,
	}
	if verified.Resolution, err = covered(ctx, verified, rule); err != nil {
		return Verified{}, failed("verifying", exactly(resolution), err)
	}
	if !verified.ownVersion && !rule.unsafe {
		i.log.WarnContext(ctx, "the artifact states no version, so the version is the tag's, which no signature covers",
			"reference", exactly(verified.Resolution))
	}
	i.events(Event{Step: StepVerified, Reference: ref, Version: resolution.Version})
	return verified.seal(), nil
}

// covered is the resolution by what the evidence is about. A rule that denies
// versions needs one that the artifact says itself.
func covered(ctx context.Context, v Verified, rule compiledRule) (Resolution, error) {
	r := v.Resolution
	if !v.coversAll() {
		var err error
		if r, err = r.manifestOnly(ctx); err != nil {
			return Resolution{}, err
		}
	}
	if denied := rule.requirements.DeniedVersions; len(denied) > 0 && !r.ownVersion && !rule.unsafe {
		return Resolution{}, fmt.Errorf("%w: the rule denies versions, and nothing that is signed says that this is %s", ErrRefused, r.Version)
	}
	return r, nil
}

// admit collects evidence, about the index and about the manifest, until there
// is enough. Unavailable is what could not be fetched and was not needed.
func (i *Installer) admit(ctx context.Context, r Resolution, rule compiledRule) (admitted admission.Admission, unavailable, err error) {
	if err := rule.requirements.Denied(r.Version, r.chain); err != nil {
		return admission.Admission{}, nil, err
	}
	if rule.unsafe {
		admitted, err := admission.Unsafe(r.Version, r.chain)
		return admitted, nil, err
	}
	evaluation, err := rule.requirements.Evaluate(r.Version, r.chain)
	if err != nil {
		return admission.Admission{}, nil, err
	}
	sources, err := i.evidenceSources(ctx, r, rule)
	if err != nil {
		return admission.Admission{}, nil, err
	}
	search := &collection{evaluation: evaluation, resolution: r, sources: sources, now: i.now()}
	admitted, err = search.run(ctx)
	return admitted, errors.Join(search.failures...), refusedError(err)
}

// under is what was verified, to be installed as plugin: if that is another name
// than the reference's, its own rule has to allow it, too.
func (i *Installer) under(ctx context.Context, plugin store.Plugin, v Verified) (Verified, error) {
	if plugin.Name() == v.Reference.Name() {
		return v, nil
	}
	own, err := i.policy.ruleFor(v.Reference.Name())
	if err != nil {
		return Verified{}, err
	}
	rule, err := i.policy.ruleFor(plugin.Name())
	if err != nil {
		return Verified{}, err
	}
	if rule.scope == own.scope {
		return v, nil
	}
	admitted, _, err := i.admit(ctx, v.Resolution, rule)
	if err != nil {
		return Verified{}, fmt.Errorf("as %s: %w", plugin.Name(), err)
	}
	as := v
	as.Verification = describeAdmission(rule, v.Resolution, admitted)
	if as.Resolution, err = covered(ctx, as, rule); err != nil {
		return Verified{}, fmt.Errorf("as %s: %w", plugin.Name(), err)
	}
	if v.Verification.Unsafe {
		as.admission = admitted
	}
	as.Verification.Unsafe = as.Verification.Unsafe && v.Verification.Unsafe
	as.Verification.Rule, as.Verification.AsRule = v.Verification.Rule, rule.scope.text
	for _, e := range v.Verification.Evidence {
		if !slices.ContainsFunc(as.Verification.Evidence, e.same) {
			as.Verification.Evidence = append(as.Verification.Evidence, e)
		}
	}
	as.Verification.Covers = coveredDigest(as.Resolution, as.Verification.Evidence)
	as.Verification.Policy, err = i.policy.fingerprint(v.Reference.Name(), plugin.Name())
	return as, err
}

// exactly names what a reference stood for.
func exactly(r Resolution) string {
	return fmt.Sprintf("%s:%s@%s", r.Reference.Name(), r.Version, r.Digest())
}

// collection is the search for enough evidence.
type collection struct {
	evaluation *admission.Evaluation
	resolution Resolution
	// sources are the places of evidence.
	sources  []Source
	now      time.Time
	admitted admission.Admission
	// failures are why evidence could not be fetched.
	failures []error
}

func (c *collection) run(ctx context.Context) (admission.Admission, error) {
	refusal := c.try()
	var search evidence.Search
	for _, subject := range c.resolution.chain.Subjects() {
		for _, src := range c.sources {
			if refusal == nil || ctx.Err() != nil || slices.ContainsFunc(c.failures, evidence.Hopeless) {
				break
			}
			err := search.Discover(ctx, src, subject, func(found evidence.Found) bool {
				if c.evaluation.Add(ctx, subject.Digest, found.Evidence) {
					refusal = c.try()
				}
				return refusal != nil && ctx.Err() == nil
			})
			if err != nil {
				c.failures = append(c.failures, err)
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return admission.Admission{}, err
	}
	if refusal == nil {
		return c.admitted, nil
	}
	refusal = c.try() // with what was looked at since
	if len(c.failures) > 0 {
		// Something could not be fetched, so nobody knows whether it would have
		// been enough: that is a failure, not a verdict.
		return admission.Admission{}, couldNotCheck(refusal, c.failures)
	}
	return admission.Admission{}, refusal
}

// couldNotCheck drops the sentinels of the refusal and keeps its words, unless
// they say that there is no signature: that is what could not be checked.
func couldNotCheck(refusal error, failures []error) error {
	if errors.Is(refusal, errUnsigned) {
		return &uncheckedError{failures: failures}
	}
	return &uncheckedError{failures: failures, otherwise: refusal.Error()}
}

// uncheckedError is evidence that could not be fetched, and what would be the
// verdict without it, "" where that is not worth telling.
type uncheckedError struct {
	failures  []error
	otherwise string
}

// Error is one line: a registry that refuses one place refuses most.
func (e *uncheckedError) Error() string {
	text, _, _ := strings.Cut(errors.Join(e.failures...).Error(), "\n")
	if more := len(e.failures) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more places)", more)
	}
	if e.otherwise == "" {
		return text + "; so it is not known who signed it"
	}
	return text + "; with what could be fetched: " + e.otherwise
}

// Unwrap gives what could not be fetched, and why.
func (e *uncheckedError) Unwrap() []error { return e.failures }

func (c *collection) try() error {
	admitted, err := c.evaluation.Decide(c.now)
	c.admitted = admitted
	return err
}

func describeAdmission(rule compiledRule, r Resolution, a admission.Admission) Verification {
	v := Verification{Unsafe: a.IsUnsafe(), Rule: rule.scope.text, Policy: rule.fingerprint()}
	for _, verified := range a.Verified() {
		v.Evidence = append(v.Evidence, describeEvidence(verified))
	}
	v.Covers = coveredDigest(r, v.Evidence)
	return v
}

func describeEvidence(verified trust.Verified) Evidence {
	signer := verified.Signer()
	e := Evidence{
		Kind: verified.Kind().String(), Format: verified.Format().String(), Subject: verified.Subject(),
		PredicateType: verified.PredicateType(), KeyID: signer.KeyID, Issuer: signer.Issuer, Identity: signer.Subject,
		SourceRepository: signer.SourceRepository, SourceRef: signer.SourceRef, SourceDigest: signer.SourceDigest,
		Workflow: signer.BuildSigner, Run: signer.RunURL,
	}
	if index, ok := verified.LogIndex(); ok {
		e.LogIndex = &index
	}
	if t := verified.Time(); !t.IsZero() {
		e.Time = &t
	}
	return e
}
