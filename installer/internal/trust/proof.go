package trust

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
)

// verifyClaim verifies that the required signer signed a claim about the subject,
// and when.
func (r Requirement) verifyClaim(ctx context.Context, subject digest.Digest, ev Evidence) (Verified, error) {
	c, err := parseClaim(ev)
	if err != nil {
		return Verified{}, err
	}
	signer, by, err := r.checkSigner(c)
	if err != nil {
		return Verified{}, err
	}
	if err := by.Verify(ctx, c.signature); err != nil {
		return Verified{}, &explained{r.wrongKey(c), err}
	}
	if err := c.about(subject); err != nil {
		return Verified{}, err
	}
	v := c.verified(subject, signer)
	if err := r.proveTime(&v, c.signature, by); err != nil {
		return Verified{}, err
	}
	return v, nil
}

// checkSigner refuses a claim that says itself that someone else signed it.
func (r Requirement) checkSigner(c claim) (Signer, *sigstore.Verifier, error) {
	if r.key != nil {
		// A layer may have a certificate beside the key's signature.
		if c.format == FormatBundle && c.signature.Certificate != nil {
			return Signer{}, nil, because(ErrWrongSigner, "with a certificate, not with a key")
		}
		return Signer{KeyID: r.key.id()}, r.key.verifier, nil
	}
	signer, err := r.identity.checkCertificate(c.signature.Certificate)
	if err != nil {
		return Signer{}, nil, err
	}
	by, err := sigstore.NewCertificateVerifier(c.signature.Certificate)
	if err != nil {
		return Signer{}, nil, &explained{ErrBadSignature, err}
	}
	return signer, by, nil
}

// wrongKey is the reason why a signature does not verify: a bundle may name
// another key. cosign writes the hash of the key, which is what we name keys by,
// too. Others may write what they like.
func (r Requirement) wrongKey(c claim) error {
	hint := c.signature.KeyHint
	if r.key == nil || hint == "" {
		return ErrBadSignature
	}
	id := r.key.verifier.KeyID()
	sum, err := base64.StdEncoding.DecodeString(hint)
	switch {
	case err != nil || len(sum) != len(id):
		return because(ErrWrongSigner, "a key named %.80q", hint)
	case string(sum) == string(id[:]):
		return ErrBadSignature
	}
	return because(ErrWrongSigner, "key %s", hex.EncodeToString(sum))
}

// proof is one way to prove when a signature was made; with neither field set,
// time is not asked for.
type proof struct{ log, timestamp bool }

// proofs lists the accepted ways, any one of which is enough.
func (r Requirement) proofs() []proof {
	switch {
	case r.key != nil:
		return []proof{{log: r.key.RequireLog, timestamp: r.key.RequireTimestamp}}
	case r.identity.TimestampSuffices:
		return []proof{{log: true}, {timestamp: true}}
	}
	return []proof{{log: true}}
}

// proven is what log entries and timestamps of a signature show, or why they show
// nothing.
type proven struct {
	logged     []sigstore.Logged
	unlogged   error
	stamps     []time.Time
	unstamped  error
	identified bool // the times must be within a certificate's
}

// proveTime verifies the proofs that the requirement asks for, and records them
// and those beyond.
func (r Requirement) proveTime(v *Verified, s *sigstore.Signature, by *sigstore.Verifier) error {
	if r.roots() == nil {
		return nil // a bare key, of which no proof can be asked
	}
	found := proven{identified: r.identity != nil}
	found.logged, found.unlogged = sigstore.VerifyLog(s, by, r.material())
	found.stamps, found.unstamped = sigstore.VerifyTimestamps(s, r.material())
	var refusals []error
	for _, p := range r.proofs() {
		times, err := found.times(p)
		if err == nil && r.identity != nil {
			err = r.identity.checkTimes(s.Certificate, times)
		}
		if err != nil {
			refusals = append(refusals, err)
			continue
		}
		for _, t := range times {
			v.at(t)
		}
		if (p.log || r.key != nil) && len(found.logged) > 0 {
			v.logIndex, v.logged = found.logged[0].Index, true
		}
		return nil
	}
	return errors.Join(refusals...)
}

// times are those that one way proves. A log that is asked for may leave it to
// a timestamp to prove the time (Rekor v2), and a key needs none.
func (f proven) times(p proof) (times []time.Time, err error) {
	if p.log && f.unlogged != nil {
		if unknown, ok := errors.AsType[*sigstore.UnknownLogError](f.unlogged); ok {
			return nil, &explained{because(ErrUnknownLog, "log %s", unknown.Log), f.unlogged}
		}
		return nil, fmt.Errorf("%w: %w", ErrUntrustedTime, f.unlogged)
	}
	if p.timestamp && f.unstamped != nil {
		return nil, fmt.Errorf("%w: %w", ErrUntrustedTime, f.unstamped)
	}
	if p.log || !f.identified {
		for _, l := range f.logged {
			if !l.Time.IsZero() {
				times = append(times, l.Time)
			}
		}
	}
	return append(times, f.stamps...), nil
}

// at records a proven time; the earliest counts.
func (v *Verified) at(t time.Time) {
	if v.time.IsZero() || t.Before(v.time) {
		v.time = t.UTC()
	}
}
