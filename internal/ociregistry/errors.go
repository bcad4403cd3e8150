package ociregistry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
	"github.com/radome-io/fleeting-plugin-openstack/internal/reason"
)

// The kinds of failure, for errors.Is. An error of a cancelled context has no
// kind: it is the context's own.
var (
	// ErrNotFound: the registry says that there is no such thing.
	ErrNotFound = reason.ErrNotFound
	// ErrUnauthorized: no or wrong credentials.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden: the credentials do not allow it.
	ErrForbidden = errors.New("forbidden")
	// ErrRateLimited: the registry still answered 429 after the retries; see
	// [RetryAfter].
	ErrRateLimited = errors.New("rate limited")
	// ErrUnavailable: the registry could not be reached, broke off or answered
	// 5xx, after the retries.
	ErrUnavailable = errors.New("registry unavailable")
	// ErrCertificate: the registry's certificate is not trusted. It also matches
	// ErrUnavailable.
	ErrCertificate = fmt.Errorf("%w: its certificate is not trusted", ErrUnavailable)
	// ErrPlainHTTP: the registry speaks no TLS. It also matches ErrUnavailable.
	ErrPlainHTTP = fmt.Errorf("%w: it speaks no TLS", ErrUnavailable)
	// ErrPage: a web page came where a registry should have answered. It also
	// matches ErrUnavailable.
	ErrPage = fmt.Errorf("%w: a web page in place of an answer", ErrUnavailable)
	// ErrStorage: the storage that the registry redirected to refused. It also
	// matches ErrUnavailable.
	ErrStorage = fmt.Errorf("%w: its storage refused", ErrUnavailable)
	// ErrAnswer: the registry refused a request as invalid, or its answer
	// contradicts the distribution specification or itself.
	ErrAnswer = errors.New("unexpected answer")
	// ErrImmutable: a tag is on other content, and the registry does not move it.
	ErrImmutable = errors.New("the registry does not move the tag")
	// ErrUnsupported: the registry does not offer the call.
	ErrUnsupported = errors.New("unsupported by the registry")
	// ErrDigestMismatch: bytes differ from their descriptor.
	ErrDigestMismatch = reason.New(reason.ErrBadContent, "mismatch", "digest mismatch")
	// ErrTooLarge: something is over the limit that the caller set.
	ErrTooLarge = reason.New(reason.ErrBadContent, "too-large", "too large")
	// ErrExhausted: what was read before it was as much as [Bounded] reads in all. It
	// also matches ErrTooLarge.
	ErrExhausted = fmt.Errorf("%w in all", ErrTooLarge)
	// ErrTLSFiles: files that [Options.TLS] names are not there or of no use.
	ErrTLSFiles = errors.New("certificates cannot be used")
	// ErrNoHelper: a password is not to be stored in plain text, and no credential
	// helper is configured.
	ErrNoHelper = errors.New("no credential helper is configured")
	// ErrHelper: a credential helper that a configuration names is not there, or
	// did not answer.
	ErrHelper = errors.New("credential helper")
	// ErrConfig: a configuration with credentials cannot be used.
	ErrConfig = errors.New("registry credentials")
	// ErrInvalid: a malformed name, reference or option.
	ErrInvalid = errors.New("invalid")
)

// ListingRefused says whether this answer to a listing of tags is the registry's
// refusal to list at all, so that one does without: not allowed (401 is, of some,
// the answer to a token that may only pull or push), not offered, or nothing
// there. Credentials that are wrong altogether fail at the next call.
func ListingRefused(err error) bool {
	return errors.Is(err, ErrForbidden) || errors.Is(err, ErrUnauthorized) ||
		errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnsupported)
}

// Error says what was tried, where, and why it failed.
type Error struct {
	// Op is what was tried, such as "fetch" or "push".
	Op string
	// Ref is the repository or folder, with the tag or digest.
	Ref string
	// Kind is one of the package's sentinels, or nil.
	Kind error
	// Err is the cause.
	Err error
}

// Error returns the operation, the reference and the cause.
func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %s", e.Op, e.Ref, plaintext.Redact(e.Err.Error()))
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Kind, e.Err}
}

// wrap names the operation and sorts the cause into a kind.
func wrap(op, ref string, err error) error {
	if err == nil {
		return nil
	}
	if _, already := errors.AsType[*Error](err); already {
		return err
	}
	return &Error{Op: op, Ref: ref, Kind: kindOf(err), Err: err}
}

func kindOf(err error) error {
	for _, kind := range []error{
		ErrNotFound, ErrUnauthorized, ErrForbidden, ErrRateLimited, ErrCertificate, ErrPlainHTTP, ErrPage, ErrStorage, ErrUnavailable,
		ErrImmutable, ErrUnsupported, ErrDigestMismatch, ErrTooLarge, ErrTLSFiles, ErrNoHelper, ErrHelper, ErrConfig, ErrAnswer, ErrInvalid,
	} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	var netErr net.Error
	var urlErr *url.Error
	var certErr *tls.CertificateVerificationError
	switch {
	case err == nil:
		return nil
	case isNotFound(err):
		return ErrNotFound
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return ErrUnauthorized
	case errors.Is(err, errdef.ErrUnsupported):
		return ErrUnsupported
	case errors.Is(err, errdef.ErrInvalidDigest), errors.Is(err, errdef.ErrInvalidReference),
		errors.Is(err, errdef.ErrMissingReference), errors.Is(err, errdef.ErrInvalidMediaType):
		return ErrInvalid
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil
	case isLocal(err):
		// Before the network's: what the system says about a file can also be
		// asked for a timeout.
		return nil
	case errors.As(err, &certErr):
		return ErrCertificate
	case errors.Is(err, http.ErrSchemeMismatch):
		return ErrPlainHTTP
	case errors.As(err, &netErr), errors.As(err, &urlErr), brokeOff(err):
		return ErrUnavailable
	default:
		// What is left are answers that contradict the specification or the
		// descriptor.
		return ErrAnswer
	}
}

// isLocal reports whether the file system failed, rather than the other side.
func isLocal(err error) bool {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	return errors.As(err, &pathErr) || errors.As(err, &linkErr)
}

func kindOfStatus(code int) error {
	switch {
	case code == http.StatusNotFound:
		return ErrNotFound
	case code == http.StatusUnauthorized:
		return ErrUnauthorized
	case code == http.StatusForbidden:
		return ErrForbidden
	case code == http.StatusTooManyRequests:
		return ErrRateLimited
	case code == http.StatusMethodNotAllowed, code == http.StatusNotImplemented:
		return ErrUnsupported
	case code == http.StatusRequestTimeout, code == http.StatusProxyAuthRequired, code >= http.StatusInternalServerError:
		return ErrUnavailable
	default:
		return ErrAnswer
	}
}
