package installer

import (
	"errors"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/evidence"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/store"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/untar"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/reason"
)

// The kinds of errors. Compare with [errors.Is]. [Reasons] returns why, within a
// kind; the table at [Reason] has them all.
var (
	// ErrRefused reports that the policy does not allow the artifact, or that
	// installing or copying it would break a rule: no signature, another signer
	// than before, an older version than before.
	ErrRefused = admission.ErrRefused
	// ErrInvalid reports a reference, platform, policy, lock or configuration that
	// cannot be used.
	ErrInvalid = reason.ErrInvalid
	// ErrNotFound reports a repository, tag, digest, version or platform that is
	// not published, or a plugin that is not installed or not locked.
	ErrNotFound = reason.ErrNotFound
	// ErrDiffers reports that what is installed is not what its receipt or the lock
	// says, or has no receipt.
	ErrDiffers = reason.ErrDiffers
	// ErrBadContent reports content from a registry that is hostile, corrupt, too
	// large or no plugin. It is never installed.
	ErrBadContent = reason.ErrBadContent
	// ErrEvidence reports a signature or attestation that is there, or may be, and
	// could not be fetched. That never counts as "not signed". The cause, such as
	// ErrUnavailable, matches too.
	ErrEvidence = evidence.ErrUnavailable
	// ErrNoSpace reports that the folder, or its quota, has no space. Nothing was
	// changed.
	ErrNoSpace = errors.New("no space left")

	// ErrUnavailable reports a registry that could not be reached, or that answered
	// with an error of its own. Try again later.
	ErrUnavailable = ociregistry.ErrUnavailable
	// ErrRateLimited reports a registry that still refused after the retries.
	ErrRateLimited = ociregistry.ErrRateLimited
	// ErrUnauthorized reports that the registry requires other credentials.
	ErrUnauthorized = ociregistry.ErrUnauthorized
	// ErrForbidden reports that the credentials do not allow the request.
	ErrForbidden = ociregistry.ErrForbidden
	// ErrAnswer reports a registry that refused a request as invalid, or whose
	// answer contradicts the specification or itself.
	ErrAnswer = ociregistry.ErrAnswer
)

// Reason is the word for why something failed, within a kind. It is data: log it,
// count it, choose a message by it. As a target of [errors.Is] it matches errors
// with that reason:
//
//	errors.Is(err, installer.Reason("unsigned"))
//
// [Reasons] returns the words of an error. A word keeps its meaning; new ones may
// come.
//
//	kind           reason          meaning
//	ErrRefused     unsigned        no signature was found
//	               wrong-signer    signed by a key or identity that the rule does not name
//	               no-attestation  an attestation is missing, or not as the rule requires
//	               one-platform    one platform is signed, its index is not
//	               no-sct          no certificate log of the trusted root has the certificate
//	               unknown-log     the trusted root does not have the transparency log
//	               no-rule         no rule of the policy is about this plugin
//	               other-policy    installed under rules that have changed since
//	               not-attested    no bundle is about the file
//	               bundle          the file with bundles cannot be read as one
//	               moved           the version was published again, with other content
//	               signer-changed  another signer than before
//	               downgrade       an older version than before
//	               occupied        the destination has other content for this version
//	               shadowed        the runner would start another version
//	               needed          another reference needs the version that would go
//	ErrInvalid     reference       not a reference, or none that is possible here
//	               platform        not a platform, such as linux/arm64
//	               policy          the policy cannot be used
//	               lock            the lock cannot be read
//	               runner-config   the runner's configuration cannot be read
//	               name            the runner cannot look up this name; see InstallOptions.As
//	               long-path       Windows starts no program with so long a path
//	               no-folder       the installer was made without WithFolder
//	ErrNotFound    (none)          the registry has no such repository, tag or digest
//	               no-version      no published version satisfies the constraint
//	               no-platform     nothing is published for the platform
//	               partial         a mirror without this platform; see PartialError
//	               not-installed   no installed version satisfies the reference
//	               not-locked      the lock does not have the reference
//	ErrDiffers     changed         a file is not what the receipt says
//	               receipt         the receipt cannot be read
//	               foreign         no receipt: something else installed it
//	               lock-differs    what is installed does not match the lock
//	               symlink         a link in the folder, where a file would be written or removed
//	ErrBadContent  mismatch        other bytes, or another version, than was asked for
//	               too-large       an index, manifest or listing exceeds its limit
//	               hostile         an archive with a link, or a name outside its folder
//	               limit           an archive that exceeds the limits
//	               corrupt         an archive that cannot be read
//	               not-plugin      the artifact holds no plugin
//	ErrAnswer      sparse          the registry accepts no index with missing platforms
type Reason string //nolint:errname // the word of an error, and data beside that

// Error returns the word.
func (r Reason) Error() string { return string(r) }

// Word returns the word.
func (r Reason) Word() string { return string(r) }

// Reasons returns why err came up, the outermost reason first. It is empty if the
// kind says it all. A refusal can have several: a signature by another signer and
// one in an unknown log.
func Reasons(err error) []Reason {
	var reasons []Reason
	for _, word := range reason.Words(err) {
		reasons = append(reasons, Reason(word))
	}
	return reasons
}

// The reasons that this package gives itself, and those of others that it wraps or
// looks for.
var (
	errBundle        = refusal("bundle", "not a sigstore bundle that makes a statement")
	errNoRule        = reason.New(ErrRefused, "no-rule", "no rule of the policy matches")
	errOtherPolicy   = reason.New(nil, "other-policy", "it was verified by rules that have changed since")
	errOnePlatform   = refusal("one-platform", "the evidence is about one platform only")
	errOccupied      = refusal("occupied", "the destination has another artifact of this version")
	errMoved         = refusal("moved", "the version was published anew")
	errSignerChanged = refusal("signer-changed", "another signer than before")
	errDowngrade     = refusal("downgrade", "an older version than before")
	errShadowed      = refusal("shadowed", "the runner would take another version")
	errNeeded        = refusal("needed", "another reference needs that version")
	errUnsigned      = admission.ErrUnsigned

	errInvalidReference = reason.New(ErrInvalid, "reference", "invalid reference")
	errInvalidPolicy    = reason.New(ErrInvalid, "policy", "invalid policy")
	errInvalidLock      = reason.New(ErrInvalid, "lock", "invalid lock")
	errInvalidConfig    = reason.New(ErrInvalid, "runner-config", "invalid runner configuration")
	errName             = store.ErrName
	errLongPath         = reason.New(ErrInvalid, "long-path", "the path is too long")
	errNoFolder         = reason.New(ErrInvalid, "no-folder", "the installer has no folder; use WithFolder")

	errNoVersion    = reason.New(ErrNotFound, "no-version", "no version satisfies the constraint")
	errNoPlatform   = reason.New(ErrNotFound, "no-platform", "nothing for this platform")
	errPartial      = reason.New(ErrNotFound, "partial", "not all platforms are there")
	errNotInstalled = store.ErrNotInstalled
	errNotLocked    = reason.New(ErrNotFound, "not-locked", "not in the lock")

	errChanged        = reason.New(ErrDiffers, "changed", "changed since it was installed")
	errInvalidReceipt = reason.New(ErrDiffers, "receipt", "invalid receipt")
	errForeign        = reason.New(ErrDiffers, "foreign", "it has no receipt, so something else installed it, such as gitlab-runner fleeting install")
	errLockDiffers    = reason.New(ErrDiffers, "lock-differs", "does not match the lock")

	errMismatch  = ociregistry.ErrDigestMismatch
	errTooLarge  = ociregistry.ErrTooLarge
	errHostile   = untar.ErrUnsafe
	errLimit     = untar.ErrLimit
	errCorrupt   = untar.ErrCorrupt
	errNotPlugin = reason.New(ErrBadContent, "not-plugin", "not a plugin")
	errSparse    = reason.New(ErrAnswer, "sparse", "the registry insists on every platform that the index names")
)

func refusal(word, text string) error {
	return reason.New(ErrRefused, word, ErrRefused.Error()+": "+text)
}

// Error says what was being done to which plugin when Err came up.
type Error struct {
	// Op is a verb in its -ing form: resolving, verifying, installing.
	Op string
	// Ref is the reference, with the version or digest where known.
	Ref string
	// Err is the cause.
	Err error
}

// Error is "OP REF: ERR".
func (e *Error) Error() string { return e.Op + " " + e.Ref + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// failed wraps err once, nil stays nil.
func failed(op, ref string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Op: op, Ref: ref, Err: err}
}
