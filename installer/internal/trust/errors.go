package trust

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/reason"
)

// The reasons for a refusal. Every error of a verification wraps exactly the
// ones that apply; errors.Is finds them.
var (
	// ErrWrongSigner: signed by another signer, or by a key where a certificate
	// is required, or the reverse.
	ErrWrongSigner = reason.New(nil, "wrong-signer", "signed by another signer")
	// ErrUntrustedCertificate: the certificate is not from a trusted authority
	// or is not in a trusted certificate log.
	ErrUntrustedCertificate = errors.New("certificate not trusted")
	// ErrNoSCT: no certificate log of the trusted root promised to list the
	// certificate (a signed certificate timestamp). It also matches
	// ErrUntrustedCertificate.
	ErrNoSCT = reason.New(ErrUntrustedCertificate, "no-sct", "certificate not trusted: no promise of a certificate log that the trusted root has (SCT)")
	// ErrBadSignature: the signature does not fit the key or the certificate.
	ErrBadSignature = errors.New("signature does not verify")
	// ErrWrongSubject: the evidence is about another digest.
	ErrWrongSubject = errors.New("evidence is about another artifact")
	// ErrUntrustedTime: no accepted proof of when, or where, it was signed: the
	// log entry or the timestamp is missing, unknown or wrong.
	ErrUntrustedTime = errors.New("no trusted proof of time")
	// ErrUnknownLog: the log that it is entered in is none of the trusted root's.
	// It also matches ErrUntrustedTime.
	ErrUnknownLog = reason.New(ErrUntrustedTime, "unknown-log", "no trusted proof of time: entered in a log that the trusted root does not have")
	// ErrMalformed: the evidence cannot be read.
	ErrMalformed = errors.New("malformed evidence")
	// ErrUnsupportedFormat: the evidence is of a form that is not verified here.
	ErrUnsupportedFormat = errors.New("unsupported form of evidence")
	// ErrRequirement: the requirement itself is empty or contradicts itself.
	ErrRequirement = errors.New("unusable requirement")
)

// Error is the refusal of one piece of evidence.
type Error struct {
	Origin string // where the evidence came from, as given by the caller
	Want   string // the requirement, in words
	Err    error  // the reason
}

func (e *Error) Error() string {
	if e.Origin == "" {
		return fmt.Sprintf("%v (required: %s)", e.Err, e.Want)
	}
	return fmt.Sprintf("%s: %v (required: %s)", e.Origin, e.Err, e.Want)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// because joins a reason of this package with what was found.
func because(reason error, format string, args ...any) error {
	return fmt.Errorf("%w: %w", reason, fmt.Errorf(format, args...))
}

// explained is a reason of this package in place of a library's refusal, whose
// words say less than the reason does.
type explained struct {
	reason, refusal error
}

func (e *explained) Error() string { return e.reason.Error() }

// Unwrap gives the reason and the refusal.
func (e *explained) Unwrap() []error { return []error{e.reason, e.refusal} }

// maxReason bounds the words of a refusal, in bytes.
const maxReason = 1000

// bounded cuts a refusal short whose words repeat the evidence, as those of some
// libraries do. It still matches the reasons of this package.
func bounded(err error) error {
	text := err.Error()
	if len(text) <= maxReason {
		return err
	}
	short := &shortened{text: strings.ToValidUTF8(text[:maxReason], "") + "…"}
	for _, reason := range []error{
		ErrWrongSigner, ErrUntrustedCertificate, ErrNoSCT, ErrBadSignature, ErrWrongSubject, ErrUntrustedTime, ErrUnknownLog,
		ErrMalformed, ErrUnsupportedFormat, ErrRequirement, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, reason) {
			short.reasons = append(short.reasons, reason)
		}
	}
	return short
}

type shortened struct {
	text    string
	reasons []error
}

func (s *shortened) Error() string { return s.text }

// Unwrap gives what it matched before.
func (s *shortened) Unwrap() []error { return s.reasons }
