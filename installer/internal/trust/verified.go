package trust

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
)

// Kind is what a piece of evidence says about its subject.
type Kind int

// The kinds of evidence. Anything in a bundle that is not cosign's own
// signature predicate is an attestation, whoever signed it.
const (
	KindSignature Kind = iota + 1
	KindAttestation
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case KindSignature:
		return "signature"
	case KindAttestation:
		return "attestation"
	}
	return "nothing"
}

// Verified is evidence that passed [Requirement.Verify]; nothing else makes
// one. Its zero value says nothing: its Kind is neither of the two.
type Verified struct {
	subject       digest.Digest
	name          string
	format        Format
	kind          Kind
	predicateType string
	predicate     []byte
	document      digest.Digest
	signer        Signer
	logIndex      int64
	logged        bool
	time          time.Time
}

// Signer says who signed, as far as the signature proves it: KeyID for a key,
// the rest from the certificate. Which of the certificate's fields are set is
// the authority's choice.
type Signer struct {
	KeyID            string // hex SHA-256 of the public key in DER form
	Issuer           string // OIDC issuer
	Subject          string // subject alternative name
	SourceRepository string // repository that the build was made from
	SourceRef        string // git ref of it
	SourceDigest     string // commit of it
	BuildSigner      string // workflow that signed
	RunURL           string // the run of that workflow
}

// String names the signer in one line, as requirements name it.
func (s Signer) String() string {
	if s.KeyID != "" {
		return "key " + s.KeyID
	}
	return s.Subject + " from " + s.Issuer
}

// Subject is the digest that is vouched for.
func (v Verified) Subject() digest.Digest { return v.subject }

// Name is what a bundle's statement calls the subject; it may be empty.
func (v Verified) Name() string { return v.name }

// Format is the form of the evidence.
func (v Verified) Format() Format { return v.format }

// Kind tells a signature from an attestation.
func (v Verified) Kind() Kind { return v.kind }

// PredicateType is the type of the in-toto predicate, "" for simple signing.
func (v Verified) PredicateType() string { return v.predicateType }

// Predicate returns the JSON of a SLSA provenance as signed. What it claims is
// the signer's word, not the authority's. Of other predicates, which may be large,
// only the type is kept, and nil returned.
func (v Verified) Predicate() []byte { return slices.Clone(v.predicate) }

// Document is the [DocumentDigest] of the predicate of an attestation, "" for
// anything else.
func (v Verified) Document() digest.Digest { return v.document }

// DocumentDigest identifies a JSON document however it is laid out: a predicate is
// the document as part of another one. It is "" for what is no JSON.
func DocumentDigest(document []byte) digest.Digest {
	var compact, escaped bytes.Buffer
	if err := json.Compact(&compact, document); err != nil {
		return ""
	}
	json.HTMLEscape(&escaped, compact.Bytes())
	return digest.FromBytes(escaped.Bytes())
}

// Signer says who signed.
func (v Verified) Signer() Signer { return v.signer }

// LogIndex is the index in the transparency log. It reports false if no log
// entry was verified.
func (v Verified) LogIndex() (int64, bool) { return v.logIndex, v.logged }

// Time is the earliest proven time at which the signature existed, zero if
// nothing proves one.
func (v Verified) Time() time.Time { return v.time }

func signerOf(c certificate.Summary) Signer {
	return Signer{
		Issuer: c.Issuer, Subject: c.SubjectAlternativeName,
		SourceRepository: c.SourceRepositoryURI, SourceRef: c.SourceRepositoryRef, SourceDigest: c.SourceRepositoryDigest,
		BuildSigner: c.BuildSignerURI, RunURL: c.RunInvocationURI,
	}
}
