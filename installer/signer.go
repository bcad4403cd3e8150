package installer

import (
	"errors"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

// Signer is somebody whose signature counts. [RequireKey] and [RequireIdentity]
// make one; the zero value is nobody, and a policy with it is refused.
type Signer struct{ requirement trust.Requirement }

// String describes the signer in one line.
func (s Signer) String() string { return s.requirement.String() }

// TrustedRoot is the trust material of a sigstore instance: its certificate
// authorities, logs and timestamp authorities.
type TrustedRoot struct{ root *trust.TrustedRoot }

// LoadTrustedRoot reads a trusted root in sigstore's JSON form (media type
// application/vnd.dev.sigstore.trustedroot+json), as `cosign trusted-root
// create` writes it. Errors match [ErrInvalid] (policy).
func LoadTrustedRoot(json []byte) (TrustedRoot, error) {
	text, err := textfile.UTF8(json)
	if err != nil {
		return TrustedRoot{}, invalid(err)
	}
	root, err := trust.LoadTrustedRoot(text)
	return TrustedRoot{root}, invalid(err)
}

// PublicTrustedRoot is the trusted root of the public sigstore instance as it
// was when this package was released. It is the default of [RequireIdentity].
func PublicTrustedRoot() (TrustedRoot, error) {
	root, err := trust.PublicTrustedRoot()
	return TrustedRoot{root}, err
}

// unusableError is what is wrong with a signer: it matches [ErrInvalid] (policy) and
// leaves it to the policy's own errors to say so.
type unusableError struct{ err error }

// Error says what is wrong.
func (e unusableError) Error() string { return e.err.Error() }

// Unwrap returns the reason and the cause.
func (e unusableError) Unwrap() error { return errors.Join(errInvalidPolicy, e.err) }

func invalid(err error) error {
	if err == nil {
		return nil
	}
	return unusableError{err}
}

// KeyOptions are further conditions on signatures made with a key. The zero
// value asks for the signature only.
type KeyOptions struct {
	// Root verifies log entries and timestamps; needed with the fields below.
	Root TrustedRoot
	// RequireLog asks for an entry in a transparency log of Root.
	RequireLog bool
	// RequireTimestamp asks for a timestamp by an authority of Root.
	RequireTimestamp bool
}

// RequireKey makes a signer of a public key: one PEM block "PUBLIC KEY" with an
// ECDSA, RSA or Ed25519 key, as `cosign generate-key-pair` writes cosign.pub.
// Errors match [ErrInvalid] (policy).
func RequireKey(publicKeyPEM []byte, opts KeyOptions) (Signer, error) {
	text, err := textfile.UTF8(publicKeyPEM)
	if err != nil {
		return Signer{}, invalid(err)
	}
	requirement, err := trust.RequireKey(text, trust.KeyOptions{
		Roots: opts.Root.root, RequireLog: opts.RequireLog, RequireTimestamp: opts.RequireTimestamp,
	})
	return Signer{requirement}, invalid(err)
}

// Identity names a keyless signer: who vouched for it, and for whom. Issuer and
// one of Subject and SubjectPattern are needed.
type Identity struct {
	// Issuer is the OIDC issuer, exactly as in the certificate.
	Issuer string
	// Subject is the certificate's subject alternative name, exactly.
	Subject string
	// SubjectPattern is an RE2 expression for the whole subject; it must start
	// with ^ and end with $.
	SubjectPattern string
	// SourceRepository, SourceRef and BuildSigner, where set, must equal the
	// certificate's extensions.
	SourceRepository, SourceRef, BuildSigner string
}

// IdentityOptions are further conditions on keyless signatures. The zero value
// asks for a certificate of the public sigstore instance with its log's promise,
// and for an entry in its transparency log.
type IdentityOptions struct {
	// Root is the sigstore instance; the zero value means the public one.
	Root TrustedRoot
	// TimestampSuffices accepts a signed timestamp in place of a log entry.
	TimestampSuffices bool
	// UnsafeNoSCT does without the certificate log's promise, for private
	// instances that have no such log.
	UnsafeNoSCT bool
}

// RequireIdentity makes a signer of a keyless identity. Errors match
// [ErrInvalid] (policy).
func RequireIdentity(id Identity, opts IdentityOptions) (Signer, error) {
	requirement, err := trust.RequireIdentity(
		trust.Identity{
			Issuer: id.Issuer, Subject: id.Subject, SubjectPattern: id.SubjectPattern,
			SourceRepository: id.SourceRepository, SourceRef: id.SourceRef, BuildSigner: id.BuildSigner,
		},
		trust.IdentityOptions{
			Roots: opts.Root.root, TimestampSuffices: opts.TimestampSuffices, UnsafeNoSCT: opts.UnsafeNoSCT,
		})
	return Signer{requirement}, invalid(err)
}
