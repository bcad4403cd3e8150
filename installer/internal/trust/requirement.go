package trust

import (
	"context"
	"encoding/json"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
)

// Requirement says what evidence must show: either a signature by one key or
// one by a certificate for one identity, never a mixture. Its zero value
// refuses everything. Make one with [RequireKey] or [RequireIdentity].
type Requirement struct {
	key         *keyRequirement
	identity    *identityRequirement
	fingerprint digest.Digest
}

type keyRequirement struct {
	KeyOptions
	verifier *sigstore.Verifier
}

type identityRequirement struct {
	IdentityOptions
	identity Identity
}

// KeyOptions are further conditions on a signature made with a key. The zero
// value asks for the signature only: a key has no time of its own to prove.
type KeyOptions struct {
	// Roots verify log entries and timestamps. With Roots, what the evidence
	// can prove about its time is reported even if it is not required.
	Roots *TrustedRoot
	// RequireLog asks for an entry in a transparency log of Roots.
	RequireLog bool
	// RequireTimestamp asks for a timestamp by an authority of Roots.
	RequireTimestamp bool
}

// IdentityOptions are further conditions on a keyless signature. With the zero
// value it needs the public sigstore instance's certificate with a certificate
// log's promise (SCT), and a transparency log entry.
type IdentityOptions struct {
	// Roots is the trusted root; nil means the public instance's, built in.
	Roots *TrustedRoot
	// TimestampSuffices accepts a timestamp by an authority of Roots in place
	// of a log entry, as GitHub's attestations of private repositories have it.
	// Nothing is accepted without a proof of time in either case.
	TimestampSuffices bool
	// UnsafeNoSCT does without the certificate log's promise. It is for
	// private instances that have no certificate log; never set it for the
	// public one.
	UnsafeNoSCT bool
}

// RequireKey requires a signature by the key, one PEM block "PUBLIC KEY" with
// an ECDSA, RSA or Ed25519 key. Errors wrap [ErrRequirement].
func RequireKey(publicKeyPEM []byte, opts KeyOptions) (Requirement, error) {
	switch {
	case opts.Roots == nil && (opts.RequireLog || opts.RequireTimestamp):
		return Requirement{}, because(ErrRequirement, "a log entry or a timestamp needs a trusted root to be checked with")
	case opts.RequireLog && len(opts.Roots.material.RekorLogs()) == 0:
		return Requirement{}, because(ErrRequirement, "the trusted root has no transparency log")
	case opts.RequireTimestamp && len(opts.Roots.material.TimestampingAuthorities()) == 0:
		return Requirement{}, because(ErrRequirement, "the trusted root has no timestamp authority")
	}
	verifier, err := parsePublicKey(publicKeyPEM)
	if err != nil {
		return Requirement{}, err
	}
	key := &keyRequirement{KeyOptions: opts, verifier: verifier}
	fingerprint, err := fingerprintOf(key.id(), opts)
	return Requirement{key: key, fingerprint: fingerprint}, err
}

// RequireIdentity requires a certificate for the identity and a proof that the
// signature was made while the certificate was valid. Errors wrap
// [ErrRequirement].
func RequireIdentity(id Identity, opts IdentityOptions) (Requirement, error) {
	if err := id.check(); err != nil {
		return Requirement{}, err
	}
	if opts.Roots == nil {
		if opts.UnsafeNoSCT {
			return Requirement{}, because(ErrRequirement, "the public instance always has an SCT: name a private trusted root, or require the SCT")
		}
		roots, err := PublicTrustedRoot()
		if err != nil {
			return Requirement{}, err
		}
		opts.Roots = roots
	}
	m := opts.Roots.material
	switch {
	case len(m.FulcioCertificateAuthorities()) == 0:
		return Requirement{}, because(ErrRequirement, "the trusted root has no certificate authority")
	case !opts.UnsafeNoSCT && len(m.CTLogs()) == 0:
		return Requirement{}, because(ErrRequirement, "the trusted root has no certificate log, so no SCT can be checked")
	case len(m.RekorLogs()) == 0 && !opts.TimestampSuffices:
		return Requirement{}, because(ErrRequirement, "the trusted root has no transparency log, and a timestamp alone is not accepted")
	case len(m.RekorLogs()) == 0 && len(m.TimestampingAuthorities()) == 0:
		return Requirement{}, because(ErrRequirement, "the trusted root has neither a transparency log nor a timestamp authority")
	}
	fingerprint, err := fingerprintOf(id, opts)
	return Requirement{identity: &identityRequirement{IdentityOptions: opts, identity: id}, fingerprint: fingerprint}, err
}

// fingerprintOf covers every field of what it is given, those that are added
// later, too: JSON has all exported fields, a trusted root as its digest.
func fingerprintOf(parts ...any) (digest.Digest, error) {
	text, err := json.Marshal(parts)
	return digest.FromBytes(text), err
}

// Fingerprint identifies everything that is required, the trusted root included.
// It is for comparing, not for people; "" for the zero value.
func (r Requirement) Fingerprint() digest.Digest { return r.fingerprint }

// IsZero reports whether nothing is required, so that everything is refused.
func (r Requirement) IsZero() bool { return r.key == nil && r.identity == nil }

// String names the requirement in one line, for messages.
func (r Requirement) String() string {
	switch {
	case r.key != nil:
		s := "key " + r.key.id()
		if r.key.RequireLog {
			s += ", in the log"
		}
		if r.key.RequireTimestamp {
			s += ", timestamped"
		}
		return s
	case r.identity != nil:
		return r.identity.identity.String()
	}
	return "nothing chosen"
}

// SameSigner says whether both are about one key or one exact identity, whatever
// other conditions they make. A pattern stands for several.
func (r Requirement) SameSigner(other Requirement) bool {
	switch {
	case r.key != nil && other.key != nil:
		return r.key.id() == other.key.id()
	case r.identity != nil && other.identity != nil:
		return r.identity.identity == other.identity.identity && r.identity.identity.Subject != ""
	}
	return false
}

// Conditions are what else is asked for, or not, beside what String says.
func (r Requirement) Conditions() []string {
	var conditions []string
	if r.identity != nil && r.identity.TimestampSuffices {
		conditions = append(conditions, "a timestamp suffices in place of a log entry")
	}
	if r.identity != nil && r.identity.UnsafeNoSCT {
		conditions = append(conditions, "without the certificate log's promise (insecure-no-sct)")
	}
	if root := r.roots(); root != nil && root.digest != digest.FromBytes(publicRoot) {
		conditions = append(conditions, "trusted root "+root.digest.String())
	}
	return conditions
}

// roots is the trusted root, nil for a key without one.
func (r Requirement) roots() *TrustedRoot {
	switch {
	case r.key != nil:
		return r.key.Roots
	case r.identity != nil:
		return r.identity.Roots
	}
	return nil
}

// ProvesTime says whether evidence can prove when it was made: a signature with
// a bare key cannot, whatever it carries, for lack of a trusted root.
func (r Requirement) ProvesTime() bool {
	return r.identity != nil || r.key != nil && r.key.Roots != nil
}

// material is the trust material, never nil.
func (r Requirement) material() root.TrustedMaterial {
	switch {
	case r.key != nil && r.key.Roots != nil:
		return r.key.Roots.material
	case r.identity != nil:
		return r.identity.Roots.material
	}
	return &root.BaseTrustedMaterial{}
}

// Verify checks one piece of evidence about the subject, the sha256 digest of
// an index or a manifest. It returns a [Verified] value only if the signature
// is by the required signer, covers exactly that digest, and has the required
// proofs. The error is an [*Error] that wraps one or more of this package's
// sentinels, or ctx's error.
//
// Verify does not judge the kind of evidence: see [Verified.Kind].
func (r Requirement) Verify(ctx context.Context, subject digest.Digest, ev Evidence) (Verified, error) {
	if err := ctx.Err(); err != nil {
		return Verified{}, err
	}
	v, err := r.verify(ctx, subject, ev)
	if err != nil {
		return Verified{}, &Error{Origin: ev.Origin, Want: r.String(), Err: bounded(err)}
	}
	return v, nil
}

func (r Requirement) verify(ctx context.Context, subject digest.Digest, ev Evidence) (Verified, error) {
	if (r.key == nil) == (r.identity == nil) {
		return Verified{}, because(ErrRequirement, "neither a key nor an identity is required")
	}
	if err := subject.Validate(); err != nil || subject.Algorithm() != digest.SHA256 {
		return Verified{}, because(ErrWrongSubject, "%q is not a sha256 digest", subject)
	}
	if err := ev.check(); err != nil {
		return Verified{}, err
	}
	var v Verified
	err := guard(func() (err error) {
		v, err = r.verifyClaim(ctx, subject, ev)
		return err
	})
	if err != nil {
		return Verified{}, err
	}
	return v, nil
}

// guard turns a panic into a refusal. The libraries behind this package index
// and assert without looking in several places that hostile annotations reach,
// such as a log entry whose body is a number or a timestamp nobody signed.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = because(ErrMalformed, "%v", p)
		}
	}()
	return f()
}
