package trust

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/go-digest"
	"github.com/sigstore/cosign/v2/pkg/cosign"
	"github.com/sigstore/cosign/v2/pkg/oci"
	"github.com/sigstore/sigstore/pkg/signature"
)

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

// verifyLegacy verifies a layer of a `.sig` or `.att` manifest. The verdict is
// cosign's, under every condition that cosign leaves to its caller.
func (r Requirement) verifyLegacy(ctx context.Context, subject digest.Digest, ev Evidence) (Verified, error) {
	l, err := parseLayer(ev)
	if err != nil {
		return Verified{}, err
	}
	v := Verified{subject: subject, format: ev.Format, kind: KindSignature}
	if l.envelope != nil {
		v.kind, v.predicateType, v.predicate = KindAttestation, l.statement.PredicateType, l.statement.Predicate
	}
	if r.key != nil {
		v.signer = Signer{KeyID: r.key.key.id}
	} else if v.signer, err = r.identity.checkCertificate(l.cert); err != nil {
		return Verified{}, err
	}
	var refusals []error
	for _, p := range r.proofs() {
		times, err := r.verifyLayer(ctx, subject, l, p)
		if err == nil {
			v.prove(l, p, times)
			r.proveMore(l, &v)
			return v, nil
		}
		refusals = append(refusals, err)
	}
	return Verified{}, errors.Join(refusals...)
}

// verifyLayer asks cosign, with one way to prove the time, and returns the
// proven times.
func (r Requirement) verifyLayer(ctx context.Context, subject digest.Digest, l *layer, p proof) (times []time.Time, err error) {
	if p.timestamp {
		t, err := l.timestamped(r.material())
		if err != nil {
			return nil, err
		}
		times = append(times, t)
	}
	if p.log {
		if l.entry == nil {
			return nil, because(ErrUntrustedTime, "no log entry")
		}
		times = append(times, time.Unix(l.entry.Payload.IntegratedTime, 0))
	}
	sig, err := l.signature(r.identity != nil || p.log)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	hash, err := v1.NewHash(subject.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrongSubject, err)
	}
	check := cosign.VerifyImageSignature
	if l.envelope != nil {
		// The same check as VerifyImageAttestation's, but in this goroutine,
		// where a panic can be caught.
		check = cosign.VerifyBlobAttestation
	}
	if err := guard(func() error { _, err := check(ctx, sig, hash, r.checkOpts(subject, l, p)); return err }); err != nil {
		return nil, r.explain(ctx, subject, l, err)
	}
	if r.identity != nil {
		return times, r.identity.checkTimes(l.cert, times)
	}
	return times, nil
}

// checkOpts are cosign's options: always a claim verifier, never a key and an
// identity together, never the network.
func (r Requirement) checkOpts(subject digest.Digest, l *layer, p proof) *cosign.CheckOpts {
	claim := cosign.SimpleClaimVerifier
	if l.envelope != nil {
		claim = cosign.IntotoSubjectClaimVerifier
	}
	co := &cosign.CheckOpts{
		TrustedMaterial: r.material(), Offline: true,
		IgnoreTlog: !p.log, UseSignedTimestamps: p.timestamp,
		ClaimVerifier: func(sig oci.Signature, hash v1.Hash, annotations map[string]any) error {
			if err := claim(sig, hash, annotations); err != nil {
				return fmt.Errorf("%w: %w", ErrWrongSubject, err)
			}
			return l.about(subject)
		},
	}
	if r.key != nil {
		co.SigVerifier, co.IgnoreSCT = r.key.key, true
		return co
	}
	id := cosign.Identity{Issuer: r.identity.identity.Issuer, Subject: r.identity.identity.Subject}
	if id.Subject == "" {
		// The pattern was checked when the requirement was made.
		id.SubjectRegExp, _ = anchored(r.identity.identity.SubjectPattern)
	}
	co.Identities, co.IgnoreSCT = []cosign.Identity{id}, r.identity.UnsafeNoSCT
	return co
}

// explain finds the reason for cosign's refusal: it says everything in one
// kind of error. It never turns a refusal into anything else.
func (r Requirement) explain(ctx context.Context, subject digest.Digest, l *layer, refusal error) error {
	if errors.Is(refusal, ErrMalformed) || errors.Is(refusal, ErrWrongSubject) {
		return refusal
	}
	var v signature.Verifier
	if r.key != nil {
		v = r.key.key
	} else {
		all, err := verifiersFor(l.cert.PublicKey)
		if err != nil {
			return &explained{ErrBadSignature, refusal}
		}
		v = &publicKey{pub: l.cert.PublicKey, verifiers: all}
	}
	if err := l.checkSignature(ctx, v); err != nil {
		return &explained{ErrBadSignature, refusal}
	}
	if err := l.about(subject); err != nil {
		return err
	}
	if l.entry != nil {
		if unknown := r.unknownLog([]string{l.entry.Payload.LogID}); unknown != "" {
			return &explained{because(ErrUnknownLog, "log %s", unknown), refusal}
		}
	}
	return fmt.Errorf("%w: %w", ErrUntrustedTime, refusal)
}

// prove records the proofs that the verification asked for.
func (v *Verified) prove(l *layer, p proof, times []time.Time) {
	for _, t := range times {
		v.at(t)
	}
	if p.log {
		v.logIndex, v.logged = l.entry.Payload.LogIndex, true
	}
}

// at records a proven time; the earliest counts.
func (v *Verified) at(t time.Time) {
	if v.time.IsZero() || t.Before(v.time) {
		v.time = t.UTC()
	}
}

// proveMore adds what evidence proves beyond the required, for key signatures
// with a trusted root. It decides nothing.
func (r Requirement) proveMore(l *layer, v *Verified) {
	if r.key == nil || r.key.Roots == nil {
		return
	}
	if t, err := l.timestamped(r.material()); err == nil {
		v.at(t)
	}
	if l.entry == nil || v.logged {
		return
	}
	sig, err := l.signature(true)
	if err != nil {
		return
	}
	co := &cosign.CheckOpts{TrustedMaterial: r.material(), SigVerifier: r.key.key, Offline: true}
	if guard(func() error { _, err := cosign.VerifyBundle(sig, co); return err }) == nil {
		v.prove(l, proof{log: true}, []time.Time{time.Unix(l.entry.Payload.IntegratedTime, 0)})
	}
}
