package installer

import (
	"errors"
	"fmt"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/evidence"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/store"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/untar"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// What callers branch on, with [errors.Is]. The errors of [ParseReference] and
// [ParsePolicy] are beside them.
var (
	// ErrRefused: the policy does not allow the artifact.
	ErrRefused = admission.ErrRefused
	// ErrUnsigned: refused, because no signature was found. It also matches
	// ErrRefused.
	ErrUnsigned = admission.ErrUnsigned
	// ErrNotAttested: refused, because no bundle is about the file. It also matches
	// ErrRefused.
	ErrNotAttested = admission.ErrNotAttested
	// ErrBundle: refused, because a file that should hold sigstore bundles with
	// statements does not. It also matches ErrRefused.
	ErrBundle = fmt.Errorf("%w: not a sigstore bundle that makes a statement", ErrRefused)
	// ErrNoRule: refused, because no rule of the policy is about this plugin. It
	// also matches ErrRefused.
	ErrNoRule = errors.New("no rule of the policy matches")
	// ErrOnePlatform: refused, because the evidence is about the manifest for one
	// platform, and the index is not signed. It also matches ErrRefused.
	ErrOnePlatform = fmt.Errorf("%w: the evidence is about one platform only", ErrRefused)
	// ErrNoAttestation: refused, because an attestation that the rule asks for is
	// not there, or not as it asks for. It also matches ErrRefused.
	ErrNoAttestation = admission.ErrNoAttestation
	// ErrWrongSigner: a signature is there, by a key or an identity that the rule
	// does not name. A [RefusedError] that matches it matches ErrRefused, too.
	ErrWrongSigner = trust.ErrWrongSigner
	// ErrNoSCT: the certificate of a keyless signer lacks the promise of a
	// certificate log (SCT) that the trusted root has. A [RefusedError] that matches
	// it matches ErrRefused, too.
	ErrNoSCT = trust.ErrNoSCT
	// ErrUnknownLog: refused, because a signature is entered in a transparency log
	// that its trusted root does not have; a newer root may. It also matches
	// ErrRefused.
	ErrUnknownLog = trust.ErrUnknownLog
	// ErrEvidence: a signature or attestation is there, or may be, and could not
	// be fetched. The cause, such as ErrUnavailable, matches too.
	ErrEvidence = evidence.ErrUnavailable

	// ErrNotFound: the registry has no such repository, tag or digest.
	ErrNotFound = ociregistry.ErrNotFound
	// ErrNoVersion: no published version satisfies the constraint.
	ErrNoVersion = errors.New("no version satisfies the constraint")
	// ErrNoPlatform: the artifact has nothing for the platform.
	ErrNoPlatform = errors.New("nothing for this platform")
	// ErrInvalidPlatform: text that names no platform, such as linux/arm64.
	ErrInvalidPlatform = artifact.ErrPlatform
	// ErrPartial: the index names manifests that are not there, as in a mirror of
	// single platforms. It comes as a [PartialError], which matches ErrNotFound, too.
	ErrPartial = errors.New("not all platforms are there")
	// ErrNotPlugin: the artifact holds no plugin that could be recognised.
	ErrNotPlugin = errors.New("not a plugin")
	// ErrSparse: the registry takes no index without all that it names, so that
	// single platforms cannot be copied there.
	ErrSparse = errors.New("the registry insists on every platform that the index names")
	// ErrOccupied: the place to copy to has the version's tag on other content. A
	// version never changes, so nothing is copied. It also matches ErrRefused.
	ErrOccupied = fmt.Errorf("%w: the destination has another artifact of this version", ErrRefused)
	// ErrNotInstalled: no installed version satisfies the reference.
	ErrNotInstalled = store.ErrNotInstalled
	// ErrNoFolder: the installer was made without [WithFolder], so it cannot
	// install.
	ErrNoFolder = errors.New("the installer has no folder; use WithFolder")
	// ErrName: the runner cannot look a plugin up under this name; install it
	// under another, see [InstallOptions].
	ErrName = store.ErrName

	// ErrNoSpace: the folder of plugins, or its quota, has no space for it. What
	// was there before is there still.
	ErrNoSpace = errors.New("no space left")
	// ErrSymlink: a symbolic link or junction in the folder of plugins, where something would
	// be written or removed through it.
	ErrSymlink = store.ErrSymlink

	// ErrMismatch: the bytes that came are not those that were asked for.
	ErrMismatch = ociregistry.ErrDigestMismatch
	// ErrTooLarge: an index, a manifest or a listing exceeds the limit on such.
	ErrTooLarge = ociregistry.ErrTooLarge
	// ErrHostile: the archive has something in it that a plugin has no reason to
	// have, such as a link or a name that leaves its folder.
	ErrHostile = untar.ErrUnsafe
	// ErrLimit: the archive exceeds the limits.
	ErrLimit = untar.ErrLimit
	// ErrCorrupt: the archive has the right digest and cannot be read.
	ErrCorrupt = untar.ErrCorrupt
	// ErrAnswer: the registry refused a request as invalid, or its answer contradicts
	// the specification or itself.
	ErrAnswer = ociregistry.ErrAnswer
	// ErrUnavailable: the registry could not be reached or answered with an error.
	ErrUnavailable = ociregistry.ErrUnavailable
	// ErrUnauthorized: the registry wants other credentials.
	ErrUnauthorized = ociregistry.ErrUnauthorized
	// ErrForbidden: the credentials do not allow it.
	ErrForbidden = ociregistry.ErrForbidden
	// ErrRateLimited: the registry still refused after the retries.
	ErrRateLimited = ociregistry.ErrRateLimited
)

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
