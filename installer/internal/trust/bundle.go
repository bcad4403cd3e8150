package trust

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// parsedBundle is a sigstore bundle, parsed and not verified.
type parsedBundle struct {
	*bundle.Bundle
	envelope  *dsse.Envelope
	statement statement
	content   verify.VerificationContent
}

func parseBundle(ev Evidence) (parsedBundle, error) {
	p := parsedBundle{Bundle: &bundle.Bundle{}}
	if err := p.UnmarshalJSON(ev.Payload); err != nil {
		if errors.Is(err, bundle.ErrUnsupportedMediaType) {
			return p, fmt.Errorf("%w: %w", ErrUnsupportedFormat, err)
		}
		return p, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	content, err := p.SignatureContent()
	if err != nil {
		return p, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if content.EnvelopeContent() == nil {
		return p, because(ErrUnsupportedFormat, "a bundle without a DSSE envelope makes no statement")
	}
	p.envelope = content.EnvelopeContent().RawEnvelope()
	if p.statement, err = decodeStatement(p.envelope); err != nil {
		return p, err
	}
	if p.content, err = p.VerificationContent(); err != nil {
		return p, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return p, nil
}

// Subjects are the sha256 digests that a bundle says it is about. Nothing of that
// is verified: it is for leaving out what is about something else. Errors are
// [ErrMalformed] and [ErrUnsupportedFormat].
func (ev Evidence) Subjects() (subjects []digest.Digest, err error) {
	if err := ev.check(); err != nil {
		return nil, err
	}
	if ev.Format != FormatBundle {
		return nil, because(ErrUnsupportedFormat, "%s", ev.Format)
	}
	err = guard(func() error {
		b, err := parseBundle(ev)
		if err != nil {
			return err
		}
		for _, s := range b.statement.Subject {
			d := digest.NewDigestFromEncoded(digest.SHA256, s.Digest[digest.SHA256.String()])
			if d.Validate() == nil {
				subjects = append(subjects, d)
			}
		}
		return nil
	})
	return subjects, err
}

// verifyBundle verifies a sigstore bundle. The verdict is sigstore-go's.
func (r Requirement) verifyBundle(ctx context.Context, subject digest.Digest, ev Evidence) (Verified, error) {
	b, err := parseBundle(ev)
	if err != nil {
		return Verified{}, err
	}
	v := Verified{
		subject: subject, name: b.statement.nameOf(subject), format: FormatBundle, kind: KindAttestation,
		predicateType: b.statement.PredicateType, predicate: b.statement.Predicate,
	}
	if v.predicateType == artifact.PredicateSignature {
		v.kind = KindSignature
	}
	if err := r.checkSigner(b, &v); err != nil {
		return Verified{}, err
	}
	var refusals []error
	for _, p := range r.proofs() {
		result, err := r.verifyEntity(ctx, subject, b, p)
		if err == nil {
			r.proveBundle(b, p, result, &v)
			return v, nil
		}
		refusals = append(refusals, err)
	}
	return Verified{}, errors.Join(refusals...)
}

func (r Requirement) checkSigner(b parsedBundle, v *Verified) (err error) {
	if r.key != nil {
		if b.content.Certificate() != nil {
			return because(ErrWrongSigner, "with a certificate, not with a key")
		}
		v.signer = Signer{KeyID: r.key.key.id}
		return nil
	}
	v.signer, err = r.identity.checkCertificate(b.content.Certificate())
	return err
}

// verifyEntity asks sigstore-go, with one way to prove the time.
func (r Requirement) verifyEntity(ctx context.Context, subject digest.Digest, b parsedBundle, p proof) (*verify.VerificationResult, error) {
	verifier, err := verify.NewVerifier(r.bundleMaterial(), r.verifierOptions(p)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequirement, err)
	}
	who, err := r.policy()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequirement, err)
	}
	raw, err := hex.DecodeString(subject.Encoded())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrongSubject, err)
	}
	var result *verify.VerificationResult
	if err := guard(func() (err error) {
		result, err = verifier.Verify(b, verify.NewPolicy(verify.WithArtifactDigest(subject.Algorithm().String(), raw), who))
		return err
	}); err != nil {
		return nil, r.explainBundle(ctx, subject, b, err)
	}
	// What is reported was decoded here, what was verified was decoded there:
	// both must have read the same.
	if result.Statement.GetPredicateType() != b.statement.PredicateType {
		return nil, because(ErrMalformed, "an ambiguous statement")
	}
	return result, b.statement.about(subject)
}

func (r Requirement) bundleMaterial() root.TrustedMaterial {
	m := withKey{TrustedMaterial: r.material()}
	if r.key != nil {
		m.key = r.key.key
	}
	return m
}

func (r Requirement) verifierOptions(p proof) []verify.VerifierOption {
	var opts []verify.VerifierOption
	if p.log {
		opts = append(opts, verify.WithTransparencyLog(1))
	}
	switch {
	case p.timestamp:
		opts = append(opts, verify.WithSignedTimestamps(1))
	case r.identity != nil:
		// The log's own time (Rekor v1) or a timestamp beside it (Rekor v2).
		opts = append(opts, verify.WithObserverTimestamps(1))
	default:
		opts = append(opts, verify.WithNoObserverTimestamps())
	}
	if r.identity != nil && !r.identity.UnsafeNoSCT {
		opts = append(opts, verify.WithSignedCertificateTimestamps(1))
	}
	return opts
}

func (r Requirement) policy() (verify.PolicyOption, error) {
	if r.key != nil {
		return verify.WithKey(), nil
	}
	id := r.identity.identity
	pattern := ""
	if id.SubjectPattern != "" {
		var err error
		if pattern, err = anchored(id.SubjectPattern); err != nil {
			return nil, err
		}
	}
	ci, err := verify.NewShortCertificateIdentity(id.Issuer, "", id.Subject, pattern)
	if err != nil {
		return nil, err
	}
	return verify.WithCertificateIdentity(ci), nil
}

// explainBundle finds the reason for sigstore-go's refusal. It never turns a
// refusal into anything else.
func (r Requirement) explainBundle(ctx context.Context, subject digest.Digest, b parsedBundle, refusal error) error {
	if errors.Is(refusal, ErrMalformed) {
		return refusal
	}
	var v *publicKey
	if r.key != nil {
		v = r.key.key
		if hint := b.content.PublicKey().Hint(); hint != "" && hint != v.hint {
			return &explained{because(ErrWrongSigner, "%s", keyNamed(hint)), refusal}
		}
	} else {
		cert := b.content.Certificate()
		all, err := verifiersFor(cert.PublicKey)
		if err != nil {
			return &explained{ErrBadSignature, refusal}
		}
		v = &publicKey{pub: cert.PublicKey, verifiers: all}
	}
	if err := checkEnvelope(ctx, v, b.envelope); err != nil {
		return &explained{ErrBadSignature, refusal}
	}
	if err := b.statement.about(subject); err != nil {
		return &explained{err, refusal}
	}
	if unknown := r.unknownLog(b.logs()); unknown != "" {
		return &explained{because(ErrUnknownLog, "log %s", unknown), refusal}
	}
	return fmt.Errorf("%w: %w", ErrUntrustedTime, refusal)
}

// keyNamed reads the name of a key in a bundle: cosign writes the hash of the key,
// which is what we name keys by, too. Others may write what they like.
func keyNamed(hint string) string {
	if sum, err := base64.StdEncoding.DecodeString(hint); err == nil && len(sum) == sha256.Size {
		return "key " + hex.EncodeToString(sum)
	}
	return fmt.Sprintf("a key named %.80q", hint)
}

// logs are the logs that a bundle says it is entered in, by the hash of their
// key, in hexadecimal.
func (b parsedBundle) logs() []string {
	entries, err := b.TlogEntries()
	if err != nil {
		return nil
	}
	var logs []string
	for _, e := range entries {
		logs = append(logs, hex.EncodeToString([]byte(e.LogKeyID())))
	}
	return logs
}

// unknownLog is a log of those named, if the trusted root has none of them and
// one is asked for.
func (r Requirement) unknownLog(logs []string) string {
	if len(logs) == 0 || !slices.ContainsFunc(r.proofs(), func(p proof) bool { return p.log }) {
		return ""
	}
	known := r.material().RekorLogs()
	if slices.ContainsFunc(logs, func(log string) bool { return known[log] != nil }) {
		return ""
	}
	return logs[0]
}

// proveBundle records the proofs that were verified, and for key signatures
// with a trusted root those beyond the required. It decides nothing.
func (r Requirement) proveBundle(b parsedBundle, p proof, result *verify.VerificationResult, v *Verified) {
	for _, t := range result.VerifiedTimestamps {
		v.at(t.Timestamp)
	}
	material := r.bundleMaterial()
	logged := p.log
	if r.key != nil && r.key.Roots != nil {
		if found, _, err := verify.VerifySignedTimestamp(b, material); err == nil {
			for _, t := range found {
				v.at(t.Time)
			}
		}
		if found, err := verify.VerifyTlogEntry(b, material, 1, true); err == nil {
			logged = true
			for _, t := range found {
				v.at(t.Time)
			}
		}
	}
	if !logged {
		return
	}
	entries, err := b.TlogEntries()
	if err != nil {
		return
	}
	for _, e := range entries {
		if _, known := material.RekorLogs()[hex.EncodeToString([]byte(e.LogKeyID()))]; known {
			v.logIndex, v.logged = e.LogIndex(), true
			return
		}
	}
}
