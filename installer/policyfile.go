package installer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/pelletier/go-toml/v2"

	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

const (
	policyVersion = 1
	policyLimit   = 1 << 20
)

// FileReader reads a file that a policy names. Relative names are relative to
// wherever the caller says; [os.ReadFile] takes the working folder, and with it
// whoever chooses that chooses the keys.
type FileReader func(name string) ([]byte, error)

// FilesBeside reads files relative to the folder of the policy at path, as
// policy.toml means them.
func FilesBeside(path string) FileReader {
	return func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		return textfile.Read(name)
	}
}

// ReadPolicy reads the policy in the file at path, and the keys and trusted
// roots that it names relative to its folder; see [ParsePolicy]. Errors name the
// file, and are of the file system or match [ErrInvalid] (policy).
func ReadPolicy(path string, builtIn ...Rule) (Policy, error) {
	f, err := os.Open(path)
	if err != nil {
		return Policy{}, err
	}
	defer f.Close() //nolint:errcheck // read only
	content, err := io.ReadAll(io.LimitReader(f, policyLimit+1))
	if err != nil {
		return Policy{}, err
	}
	policy, err := ParsePolicy(content, FilesBeside(path), builtIn...)
	if err != nil {
		return Policy{}, fmt.Errorf("%s: %w", path, err)
	}
	return policy, nil
}

// ParsePolicy reads policy.toml. It is strict: an unknown key, a rule that
// contradicts itself, a key that cannot be read are all errors, because each
// would make the policy mean something else than was written. Errors match
// [ErrInvalid] (policy) and name the line where they can.
//
// The policy trusts whom the file names, and nobody else unless the caller says
// so: builtIn are rules of the caller's own, such as [OwnPublisher]. Each is added
// unless the file has a rule for the same scope, none if the file says
// built-in-publisher = false.
func ParsePolicy(content []byte, read FileReader, builtIn ...Rule) (Policy, error) {
	if len(content) > policyLimit {
		return Policy{}, fmt.Errorf("%w: longer than %d bytes", errInvalidPolicy, policyLimit)
	}
	content, err := textfile.UTF8(content)
	if err != nil {
		return Policy{}, fmt.Errorf("%w: %w", errInvalidPolicy, err)
	}
	var file policyFile
	decoder := toml.NewDecoder(bytes.NewReader(content)).DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return Policy{}, fmt.Errorf("%w: %w", errInvalidPolicy, readable(err))
	}
	if file.Version == 0 {
		return Policy{}, fmt.Errorf("%w: it has no version: begin it with version = %d", errInvalidPolicy, policyVersion)
	}
	if file.Version != policyVersion {
		return Policy{}, fmt.Errorf("%w: version = %d; this program reads version = %d", errInvalidPolicy, file.Version, policyVersion)
	}
	var rules []Rule
	var problems []error
	if file.BuiltInPublisher != nil && !*file.BuiltInPublisher {
		builtIn = nil
	}
	for _, written := range file.Rules {
		rule, err := written.rule(read)
		if err != nil {
			problems = append(problems, fmt.Errorf("%w: rule for %q: %w", errInvalidPolicy, written.Scope, err))
		}
		rules = append(rules, rule)
	}
	if err := errors.Join(problems...); err != nil {
		return Policy{}, err
	}
	for _, own := range builtIn {
		if !slices.ContainsFunc(rules, func(r Rule) bool { return oneSpelling(r.Scope) == oneSpelling(own.Scope) }) {
			rules = append(rules, own)
		}
	}
	return NewPolicy(rules...)
}

// readable puts the line and the key into the text of a decoder's error.
func readable(err error) error {
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		var unknown []string
		for _, e := range strict.Errors {
			line, _ := e.Position()
			unknown = append(unknown, fmt.Sprintf("line %d: unknown key %q", line, strings.Join(e.Key(), ".")))
		}
		return errors.New(strings.Join(unknown, "; "))
	}
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := at.Position()
		return fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	return err
}

// OwnPublisher is the rule for what the makers of this package publish: signed
// without keys by the release workflow of their repository, with provenance. It is
// in no policy unless it is put there; fleeting-plugin does.
func OwnPublisher() (Rule, error) {
	const repository = "https://github.com/radome-io/fleeting-plugin-openstack"
	signer, err := RequireIdentity(Identity{
		Issuer:         "https://token.actions.githubusercontent.com",
		SubjectPattern: `^https://github\.com/radome-io/fleeting-plugin-openstack/\.github/workflows/release\.yml@refs/tags/v[0-9][^/]*$`,
	}, IdentityOptions{})
	if err != nil {
		return Rule{}, err
	}
	return Rule{
		Scope: "ghcr.io/radome-io/**", Signers: []Signer{signer},
		Attestations: []Attestation{{PredicateType: "provenance", SourceRepository: repository, SourceRef: "refs/tags/v*"}},
	}, nil
}

// RuleSummary describes a rule of a policy, for people and programs.
type RuleSummary struct {
	// Scope is what the rule is about.
	Scope string `json:"scope"`
	// Signers describe who may sign.
	Signers []string `json:"signers,omitempty"`
	// Threshold is how many must.
	Threshold int `json:"threshold"`
	// Attestations must all be there.
	Attestations []AttestationSummary `json:"attestations,omitempty"`
	// MinimumAge is empty without one.
	MinimumAge string `json:"minimumAge,omitempty"`
	// DeniedVersions are constraints, DeniedDigests of indexes, manifests or layers.
	DeniedVersions []string        `json:"deniedVersions,omitempty"`
	DeniedDigests  []digest.Digest `json:"deniedDigests,omitempty"`
	// Unsafe says that nothing is verified in this scope.
	Unsafe bool `json:"unsafe,omitempty"`
	// SignatureRepository is where evidence is looked for besides.
	SignatureRepository string `json:"signatureRepository,omitempty"`
	// YieldsTo are the scopes of rules that decide about some of the names of this
	// one in its place, although they are about other names, too.
	YieldsTo []string `json:"yieldsTo,omitempty"`
}

// RuleMatch is a rule that matches a name.
type RuleMatch struct {
	RuleSummary
	// Decides says that this rule decides; of all that match one does.
	Decides bool `json:"decides"`
	// Why says in a sentence why it does, or why another does.
	Why string `json:"why"`
}

// AttestationSummary describes an [Attestation]; conditions that are not made are
// empty.
type AttestationSummary struct {
	// Types are the predicate types of which one must be there.
	Types []string `json:"types"`
	// Builder, SourceRepository and SourceRef as in [Attestation].
	Builder          string `json:"builder,omitempty"`
	SourceRepository string `json:"sourceRepository,omitempty"`
	SourceRef        string `json:"sourceRef,omitempty"`
}

// Rules describes the policy, the most specific rule first.
func (p Policy) Rules() []RuleSummary {
	rules := make([]RuleSummary, 0, len(p.rules)+1)
	for i, r := range p.rules {
		summary := r.summary()
		for _, earlier := range p.rules[:i] {
			if r.scope.crosses(earlier.scope) {
				summary.YieldsTo = append(summary.YieldsTo, earlier.scope.text)
			}
		}
		rules = append(rules, summary)
	}
	if p.unsafe {
		rules = append(rules, RuleSummary{Scope: "**", Unsafe: true})
	}
	return rules
}

func (r compiledRule) summary() RuleSummary {
	summary := RuleSummary{Scope: r.scope.text, Unsafe: r.unsafe}
	if !r.unsafe {
		summary.Threshold = max(1, r.requirements.Threshold)
		if r.requirements.AttestationsSuffice {
			summary.Threshold = 0
		}
	}
	for _, s := range r.requirements.Signers {
		summary.Signers = append(summary.Signers, strings.Join(append([]string{s.String()}, s.Conditions()...), "; "))
	}
	for _, a := range r.requirements.Attestations {
		summary.Attestations = append(summary.Attestations, AttestationSummary{a.Types, a.Builder, a.SourceRepository, a.SourceRef.String()})
	}
	if r.requirements.MinimumAge > 0 {
		summary.MinimumAge = r.requirements.MinimumAge.String()
	}
	for _, denied := range r.requirements.DeniedVersions {
		summary.DeniedVersions = append(summary.DeniedVersions, denied.String())
	}
	summary.DeniedDigests = slices.Clone(r.requirements.DeniedDigests)
	if !r.signatures.IsZero() {
		summary.SignatureRepository = r.signatures.Name()
	}
	return summary
}

// RuleFor describes the rule that decides about a reference, or gives the
// [NoRuleError].
func (p Policy) RuleFor(ref Reference) (RuleSummary, error) {
	rule, err := p.ruleFor(ref.Name())
	if err != nil {
		return RuleSummary{}, err
	}
	return rule.summary(), nil
}

// Matches describes every rule that matches a reference, the one that decides
// first, or gives the [NoRuleError].
func (p Policy) Matches(ref Reference) ([]RuleMatch, error) {
	rules := p.rulesAbout(ref.Name())
	if len(rules) == 0 {
		return nil, &NoRuleError{Name: ref.Name()}
	}
	deciding := rules[0]
	matches := []RuleMatch{{deciding.summary(), true, "It is the only rule that matches."}}
	for n, rule := range rules[1:] {
		_, why := deciding.scope.before(rule.scope)
		if n == 0 {
			matches[0].Why = fmt.Sprintf("Of the %d rules that match it %s.", len(rules), why)
		}
		matches = append(matches, RuleMatch{rule.summary(), false, fmt.Sprintf("The rule for %s %s.", deciding.scope.text, why)})
	}
	return matches, nil
}

// policyFile is the form of policy.toml.
type policyFile struct {
	Version          int        `toml:"version"`
	BuiltInPublisher *bool      `toml:"built-in-publisher"`
	Rules            []fileRule `toml:"rule"`
}

type fileRule struct {
	Scope               string            `toml:"scope"`
	Threshold           int               `toml:"threshold"`
	AttestationsSuffice bool              `toml:"attestations-suffice"`
	MinimumAge          string            `toml:"minimum-age"`
	DeniedVersions      []string          `toml:"denied-versions"`
	DeniedDigests       []string          `toml:"denied-digests"`
	InsecureUnsigned    bool              `toml:"insecure-unsigned"`
	SignatureRepository string            `toml:"signature-repository"`
	Keys                []fileKey         `toml:"key"`
	Identities          []fileIdentity    `toml:"identity"`
	Attestations        []fileAttestation `toml:"attestation"`
}

type fileKey struct {
	File             string `toml:"file"`
	PEM              string `toml:"pem"`
	TrustedRoot      string `toml:"trusted-root"`
	RequireLog       bool   `toml:"require-log"`
	RequireTimestamp bool   `toml:"require-timestamp"`
}

type fileIdentity struct {
	Issuer            string `toml:"issuer"`
	Subject           string `toml:"subject"`
	SubjectPattern    string `toml:"subject-pattern"`
	SourceRepository  string `toml:"source-repository"`
	SourceRef         string `toml:"source-ref"`
	BuildSigner       string `toml:"build-signer"`
	TrustedRoot       string `toml:"trusted-root"`
	TimestampSuffices bool   `toml:"timestamp-suffices"`
	InsecureNoSCT     bool   `toml:"insecure-no-sct"`
}

type fileAttestation struct {
	Type             string `toml:"type"`
	Builder          string `toml:"builder"`
	SourceRepository string `toml:"source-repository"`
	SourceRef        string `toml:"source-ref"`
}

func (f fileRule) rule(read FileReader) (Rule, error) {
	rule := Rule{
		Scope: f.Scope, Threshold: f.Threshold, AttestationsSuffice: f.AttestationsSuffice, UnsafeUnsigned: f.InsecureUnsigned,
		SignatureRepository: f.SignatureRepository,
	}
	var problems []error
	note := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	if f.MinimumAge != "" {
		age, err := time.ParseDuration(f.MinimumAge)
		if err != nil {
			note(fmt.Errorf("minimum-age %q: hours, minutes and seconds, as in \"72h\" for three days", f.MinimumAge))
		}
		rule.MinimumAge = age
	}
	for _, text := range f.DeniedVersions {
		c, err := version.ParseConstraint(text)
		note(err)
		rule.DeniedVersions = append(rule.DeniedVersions, c)
	}
	for _, text := range f.DeniedDigests {
		rule.DeniedDigests = append(rule.DeniedDigests, digest.Digest(text))
	}
	for _, key := range f.Keys {
		signer, err := key.signer(read)
		note(err)
		rule.Signers = append(rule.Signers, signer)
	}
	for _, identity := range f.Identities {
		signer, err := identity.signer(read)
		note(err)
		rule.Signers = append(rule.Signers, signer)
	}
	for _, a := range f.Attestations {
		rule.Attestations = append(rule.Attestations, Attestation{
			PredicateType: a.Type, Builder: a.Builder, SourceRepository: a.SourceRepository, SourceRef: a.SourceRef,
		})
	}
	return rule, errors.Join(problems...)
}

func (f fileKey) signer(read FileReader) (Signer, error) {
	if (f.File == "") == (f.PEM == "") {
		return Signer{}, errors.New("a key needs either file or pem")
	}
	pem := []byte(f.PEM)
	if f.File != "" {
		content, err := read(f.File)
		if err != nil {
			return Signer{}, fmt.Errorf("key: %w", err)
		}
		pem = content
	}
	root, err := readRoot(f.TrustedRoot, read)
	if err != nil {
		return Signer{}, err
	}
	return RequireKey(pem, KeyOptions{Root: root, RequireLog: f.RequireLog, RequireTimestamp: f.RequireTimestamp})
}

func (f fileIdentity) signer(read FileReader) (Signer, error) {
	root, err := readRoot(f.TrustedRoot, read)
	if err != nil {
		return Signer{}, err
	}
	return RequireIdentity(
		Identity{
			Issuer: f.Issuer, Subject: f.Subject, SubjectPattern: f.SubjectPattern,
			SourceRepository: f.SourceRepository, SourceRef: f.SourceRef, BuildSigner: f.BuildSigner,
		},
		IdentityOptions{Root: root, TimestampSuffices: f.TimestampSuffices, UnsafeNoSCT: f.InsecureNoSCT})
}

// readRoot reads a trusted root; the empty name is the zero value and the name
// public the built-in one.
func readRoot(name string, read FileReader) (TrustedRoot, error) {
	switch name {
	case "":
		return TrustedRoot{}, nil
	case "public":
		return PublicTrustedRoot()
	}
	content, err := read(name)
	if err != nil {
		return TrustedRoot{}, fmt.Errorf("trusted root: %w", err)
	}
	return LoadTrustedRoot(content)
}
