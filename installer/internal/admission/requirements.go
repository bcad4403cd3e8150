package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/reason"
)

var (
	// ErrRefused is what every refusal matches: the artifact may not be installed.
	ErrRefused = errors.New("refused by policy")
	// ErrUnsigned is a refusal because no signature was found at all.
	ErrUnsigned = reason.New(nil, "unsigned", "not signed")
	// ErrNoAttestation is a refusal because an attestation that the policy asks
	// for is not there, or is not as it asks for.
	ErrNoAttestation = reason.New(nil, "no-attestation", "no attestation")
)

// Requirements are what a chain must show to be admitted. The zero value admits
// nothing.
type Requirements struct {
	// Signers are those whose signature counts.
	Signers []trust.Requirement
	// Threshold is how many of Signers must have signed, each as another
	// identity; zero means one.
	Threshold int
	// AttestationsSuffice asks for no signature beside the attestations, of
	// which there must then be one at least.
	AttestationsSuffice bool
	// Attestations must all be there.
	Attestations []Attestation
	// MinimumAge is how long ago everything that is asked for must have been
	// there, by proven times only: see [trust.Verified.Time].
	MinimumAge time.Duration
	// DeniedVersions and DeniedDigests are never admitted. A digest is that of
	// an index, a manifest or a layer.
	DeniedVersions []version.Constraint
	DeniedDigests  []digest.Digest
	// provenances are the conditions that a provenance must meet to count as a
	// signature; none, unless a file is judged.
	provenances []Attestation
}

// Check says whether the requirements can be met at all and mean something.
func (r Requirements) Check() error {
	switch {
	case len(r.Signers) == 0:
		return errors.New("no key and no identity: no signature can satisfy this")
	case r.Threshold < 0:
		return fmt.Errorf("threshold %d is below zero", r.Threshold)
	case r.Threshold > len(r.Signers):
		return fmt.Errorf("threshold %d, but there are %d keys and identities", r.Threshold, len(r.Signers))
	case r.AttestationsSuffice && len(r.Attestations) == 0:
		return errors.New("attestations are to suffice, but none is required")
	case r.AttestationsSuffice && r.Threshold > 0:
		return errors.New("a threshold counts signatures, but attestations are to suffice")
	}
	for _, a := range r.Attestations {
		if len(a.Types) == 0 {
			return errors.New("an attestation without a predicate type")
		}
	}
	return r.checkAge()
}

// Different is the number of signers, each key and exact identity once.
func (r Requirements) Different() int {
	n := 0
	for i, one := range r.Signers {
		if !slices.ContainsFunc(r.Signers[:i], one.SameSigner) {
			n++
		}
	}
	return n
}

// needed is the number of signatures.
func (r Requirements) needed() int {
	if r.AttestationsSuffice {
		return 0
	}
	return max(1, r.Threshold)
}

// Denied says why the version or one of the digests is never admitted; nil if
// nothing speaks against it. It needs no evidence, so it can be asked first.
func (r Requirements) Denied(v version.Version, chain Chain) error {
	if err := r.deniedVersion(v); err != nil {
		return err
	}
	digests := []digest.Digest{chain.ManifestDigest(), chain.Index()}
	for _, layer := range chain.decoded.Layers {
		digests = append(digests, layer.Digest)
	}
	for _, d := range digests {
		if d != "" && slices.Contains(r.DeniedDigests, d) {
			return fmt.Errorf("%w: digest %s is denied", ErrRefused, d)
		}
	}
	return nil
}

func (r Requirements) deniedVersion(v version.Version) error {
	for _, c := range r.DeniedVersions {
		if c.Match(v) || c.Match(v.Core()) {
			return fmt.Errorf("%w: version %s is denied by %q", ErrRefused, v, c)
		}
	}
	return nil
}

// names lists the signers, for messages.
func (r Requirements) names() string {
	var names []string
	for _, s := range r.Signers {
		names = append(names, s.String())
	}
	return strings.Join(names, " or ")
}
