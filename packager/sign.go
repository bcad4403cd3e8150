package packager

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
	"github.com/radome-io/fleeting-plugin-openstack/packager/internal/signer"
)

// SignatureFormat says in which forms signatures and attestations are published.
// The zero value is [FormatBoth].
type SignatureFormat string

// The forms.
const (
	// FormatBoth is FormatBundle and FormatTag. If the registry does not move the
	// tags of one of them, the other one suffices, with a warning.
	FormatBoth SignatureFormat = "both"
	// FormatBundle is a sigstore bundle among the referrers of a manifest, which
	// cosign 3 looks for.
	FormatBundle SignatureFormat = "bundle"
	// FormatTag is a layer under the tag sha256-….sig or sha256-….att, which cosign 2
	// looks for.
	FormatTag SignatureFormat = "tag"
)

// ParseSignatureFormat reads the name of a form. The error is [ErrSigningOptions].
func ParseSignatureFormat(name string) (SignatureFormat, error) {
	switch f := SignatureFormat(name); f {
	case FormatBoth, FormatBundle, FormatTag:
		return f, nil
	}
	return "", fmt.Errorf("%w: signature format %q: %s, %s or %s", ErrSigningOptions, name, FormatBundle, FormatTag, FormatBoth)
}

func (f SignatureFormat) bundles() bool { return f != FormatTag }
func (f SignatureFormat) tags() bool    { return f != FormatBundle }

// SignOptions change what [Sign] and [Attest] do.
type SignOptions struct {
	// Format says in which forms evidence is published.
	Format SignatureFormat
	// Signatures is the repository that evidence is published to; nil means beside
	// the artifact. It suits registries whose tags are immutable, and signers who
	// must not write to the artifact's repository. Verifiers have to be told of it,
	// cosign by COSIGN_REPOSITORY, which it takes for tags only.
	Signatures Repository
	// Report is told of every step.
	Report func(Event)
}

// Signed says what was signed.
type Signed struct {
	Repository string        `json:"repository"`
	Digest     digest.Digest `json:"digest"`
	// Manifests are the digests that carry the signature: the index and every
	// platform's manifest, or the single manifest that was published.
	Manifests []digest.Digest `json:"manifests"`
	// Predicates are the types that were attested; empty for a signature.
	Predicates []string `json:"predicates,omitempty"`
	// Present counts what the same key had signed before and was left alone.
	Present int `json:"present"`
	// Outcomes says what became of each kind.
	Outcomes []Outcome `json:"outcomes"`
	// Signatures is the repository that evidence was published to, if that is not
	// the artifact's.
	Signatures string `json:"signatures,omitempty"`
	// Warnings say what could not be published in every form.
	Warnings []dist.Warning `json:"warnings,omitempty"`
	// Bundles are the attestations, in the order in which they were made.
	Bundles []SignedBundle `json:"-"`
}

// SignedBundle is an attestation as it hangs off the digests that it is about: a
// sigstore bundle, version 0.3.
type SignedBundle struct {
	PredicateType string
	Content       []byte
}

// Outcome counts manifests.
type Outcome struct {
	// What is [Event.Signed].
	What string `json:"what"`
	// New are those that have a new signature or attestation, Present those that
	// had it by the same key.
	New     int `json:"new"`
	Present int `json:"present"`
}

// Sign signs the index that the tag or digest resolves to, and every platform's
// manifest in it, or a single manifest. Each signature is published in the forms of
// the options. What the same key or identity signed before is not signed again.
func Sign(ctx context.Context, repo Repository, reference string, s *Signer, opts SignOptions) (*Signed, error) {
	t, err := readTree(ctx, repo, reference)
	if err != nil {
		return nil, err
	}
	e := newEvidence(repo, s, opts)
	if err := e.sign(ctx, t.subjects()); err != nil {
		return nil, err
	}
	return e.publish(ctx)
}

// statement is a predicate and what it is about.
type statement struct {
	predicateType string
	predicate     []byte
	subjects      []ocispec.Descriptor
}

// evidence is what one signer makes about an artifact. It is published when all of
// it is made: subject by subject, each list and each tag with one write, which is
// all that a registry with immutable tags takes.
type evidence struct {
	repo   Repository
	signer *Signer
	opts   SignOptions
	report func(Event)

	subjects []*subjectEvidence
	// manifests are the subjects of everything that was signed, in that order.
	manifests []ocispec.Descriptor
	types     []string
	bundles   []SignedBundle
	present   int
	outcomes  []Outcome
	warnings  []dist.Warning
}

// subjectEvidence is what is published about one manifest.
type subjectEvidence struct {
	subject   ocispec.Descriptor
	documents []referrer
	pieces    []piece
}

// piece is a signature or an attestation.
type piece struct {
	// what is [Event.Signed].
	what   string
	tag    string
	signed signer.Signed
}

func newEvidence(repo Repository, s *Signer, opts SignOptions) *evidence {
	e := &evidence{repo: repo, signer: s, opts: opts, report: reporter(opts.Report)}
	if s != nil && !opts.Format.bundles() && s.s.TagsLackLog() {
		e.warnings = append(e.warnings, dist.Warning{
			Subject: "signature format " + string(opts.Format),
			Message: "entries of a log of Rekor version 2 have no place there: who verifies sees a timestamp only, and refuses if it must see the log, too; choose another format, or Rekor version 1",
		})
	}
	return e
}

// about is where evidence about a manifest is gathered.
func (e *evidence) about(subject ocispec.Descriptor) *subjectEvidence {
	for _, s := range e.subjects {
		if s.subject.Digest == subject.Digest {
			return s
		}
	}
	s := &subjectEvidence{subject: subject}
	e.subjects = append(e.subjects, s)
	return s
}

// sign signs every subject by itself.
func (e *evidence) sign(ctx context.Context, subjects []ocispec.Descriptor) error {
	for _, subject := range subjects {
		signed, err := e.signer.s.SignImage(ctx, e.repo.Name(), subject.Digest)
		if err != nil {
			return fmt.Errorf("signing %s: %w", subject.Digest, err)
		}
		about := e.about(subject)
		about.pieces = append(about.pieces, piece{"signature", artifact.SignatureTag(subject.Digest), signed})
		e.manifests = append(e.manifests, subject)
	}
	return nil
}

// attest signs each statement once, for all its subjects.
func (e *evidence) attest(ctx context.Context, statements []statement) error {
	// A registry lists documents in any order; what is said of them has one.
	byType := func(a, b statement) int { return strings.Compare(a.predicateType, b.predicateType) }
	for _, st := range slices.SortedStableFunc(slices.Values(statements), byType) {
		named := make([]signer.Subject, len(st.subjects))
		for i, s := range st.subjects {
			named[i] = signer.Subject{Name: e.repo.Name(), Digest: s.Digest}
		}
		signed, err := e.signer.s.Attest(ctx, named, st.predicateType, st.predicate)
		if err != nil {
			return fmt.Errorf("attesting %s: %w", st.predicateType, err)
		}
		for _, s := range st.subjects {
			about := e.about(s)
			about.pieces = append(about.pieces, piece{st.predicateType, artifact.AttestationTag(s.Digest), signed})
		}
		if !slices.Contains(e.types, st.predicateType) {
			e.types = append(e.types, st.predicateType)
		}
		e.manifests = append(e.manifests, st.subjects...)
		e.bundles = append(e.bundles, SignedBundle{st.predicateType, signed.Bundle})
	}
	return nil
}

// result says what was made and published.
func (e *evidence) result() *Signed {
	out := &Signed{
		Repository: e.repo.Name(), Predicates: e.types, Present: e.present, Outcomes: e.outcomes, Warnings: e.warnings, Bundles: e.bundles,
	}
	if e.opts.Signatures != nil {
		out.Signatures = e.opts.Signatures.Name()
	}
	for _, s := range e.manifests {
		if !slices.Contains(out.Manifests, s.Digest) {
			out.Manifests = append(out.Manifests, s.Digest)
		}
		if artifact.IsIndex(s.MediaType) {
			out.Digest = s.Digest
		}
	}
	if out.Digest == "" && len(out.Manifests) == 1 {
		out.Digest = out.Manifests[0] // a single manifest
	}
	return out
}

// count notes what became of one piece.
func (e *evidence) count(what string, isNew bool) {
	i := slices.IndexFunc(e.outcomes, func(o Outcome) bool { return o.What == what })
	if i < 0 {
		i = len(e.outcomes)
		e.outcomes = append(e.outcomes, Outcome{What: what})
	}
	if isNew {
		e.outcomes[i].New++
		return
	}
	e.outcomes[i].Present++
	e.present++
}

// The predicate types of bills of materials, as cosign writes them, and that of
// SLSA provenance v1, https://slsa.dev/spec/v1.0/provenance.
const (
	PredicateSPDX       = artifact.PredicateSPDX
	PredicateCycloneDX  = artifact.PredicateCycloneDX
	PredicateProvenance = artifact.PredicateProvenance
)

// Predicate is something to be attested about a whole release.
type Predicate struct {
	// Type is a URI, Content JSON.
	Type    string
	Content []byte
}

// Attest signs attestations about the index that the tag or digest resolves to: each
// bill of materials about the manifest that it refers to, and the given predicates
// about the index and all its manifests. Each attestation is published in the forms
// of the options.
//
// Anyone with push access can attach a document to a manifest. So attest right after
// pushing, or use [Release], which signs the documents that it made itself.
func Attest(ctx context.Context, repo Repository, reference string, s *Signer, predicates []Predicate, opts SignOptions) (*Signed, error) {
	t, err := readTree(ctx, repo, reference)
	if err != nil {
		return nil, err
	}
	subjects := t.subjects()
	var statements []statement
	for _, subject := range subjects {
		found, err := attachedSBOMs(ctx, repo, subject)
		if err != nil {
			return nil, err
		}
		statements = append(statements, found...)
	}
	statements = append(statements, aboutAll(predicates, subjects)...)
	e := newEvidence(repo, s, opts)
	if err := e.attest(ctx, statements); err != nil {
		return nil, err
	}
	return e.publish(ctx)
}

func aboutAll(predicates []Predicate, subjects []ocispec.Descriptor) []statement {
	var all []statement
	for _, p := range predicates {
		all = append(all, statement{predicateType: p.Type, predicate: p.Content, subjects: subjects})
	}
	return all
}

// sbomLimit bounds a bill of materials, in bytes.
const sbomLimit = 64 << 20

// attachedSBOMs returns the bills of materials that refer to a manifest.
func attachedSBOMs(ctx context.Context, from Content, subject ocispec.Descriptor) ([]statement, error) {
	referrers, err := referrersOf(ctx, from, subject)
	if err != nil {
		return nil, err
	}
	var found []statement
	for _, r := range referrers {
		for _, p := range r.parts {
			predicateType := artifact.PredicateOf(p.desc.MediaType)
			if predicateType == "" {
				continue
			}
			document, err := from.FetchAll(ctx, p.desc, sbomLimit)
			if err != nil {
				return nil, err
			}
			found = append(found, statement{predicateType, document, []ocispec.Descriptor{subject}})
		}
	}
	return found, nil
}
