package trust

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	cbundle "github.com/sigstore/cosign/v2/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v2/pkg/oci"
	"github.com/sigstore/cosign/v2/pkg/oci/static"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
	sigdsse "github.com/sigstore/sigstore/pkg/signature/dsse"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// layer is one layer of a `.sig` or `.att` manifest, parsed and not verified.
type layer struct {
	payload   []byte
	sig       []byte // simple signing only; an envelope holds its own
	envelope  *dsse.Envelope
	statement statement
	simple    simpleSigning
	cert      *x509.Certificate
	entry     *cbundle.RekorBundle
	timestamp *cbundle.RFC3161Timestamp
}

func parseLayer(ev Evidence) (*layer, error) {
	l := &layer{payload: ev.Payload}
	var err error
	if ev.Format == FormatSimpleSigning {
		err = l.parseSimpleSigning(ev.Annotations[artifact.AnnotationSignature])
	} else {
		err = l.parseEnvelope()
	}
	if err != nil {
		return nil, err
	}
	if l.cert, err = parseCertificate(ev.Annotations[artifact.AnnotationCertificate]); err != nil {
		return nil, err
	}
	if l.entry, err = parseEntry(ev.Annotations[artifact.AnnotationLogEntry]); err != nil {
		return nil, err
	}
	l.timestamp, err = parseTimestamp(ev.Annotations[artifact.AnnotationTimestamp])
	return l, err
}

func (l *layer) parseSimpleSigning(b64 string) (err error) {
	if b64 == "" {
		return because(ErrMalformed, "no annotation %s", artifact.AnnotationSignature)
	}
	if l.sig, err = base64.StdEncoding.DecodeString(b64); err != nil {
		return fmt.Errorf("%w: signature: %w", ErrMalformed, err)
	}
	l.simple, err = decodeSimpleSigning(l.payload)
	return err
}

func (l *layer) parseEnvelope() (err error) {
	l.envelope = &dsse.Envelope{}
	if err := json.Unmarshal(l.payload, l.envelope); err != nil {
		return fmt.Errorf("%w: envelope: %w", ErrMalformed, err)
	}
	l.statement, err = decodeStatement(l.envelope)
	return err
}

// parseCertificate reads exactly one PEM certificate, nil from "".
func parseCertificate(text string) (*x509.Certificate, error) {
	if text == "" {
		return nil, nil
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, because(ErrMalformed, "the certificate annotation does not hold exactly one certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return cert, nil
}

// parseEntry reads a Rekor v1 log entry. cosign asserts that its body is a
// string without looking.
func parseEntry(text string) (*cbundle.RekorBundle, error) {
	if strings.TrimSpace(text) == "" || strings.TrimSpace(text) == "null" {
		return nil, nil
	}
	var b cbundle.RekorBundle
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return nil, fmt.Errorf("%w: log entry: %w", ErrMalformed, err)
	}
	if body, ok := b.Payload.Body.(string); !ok || body == "" || len(b.SignedEntryTimestamp) == 0 || b.Payload.IntegratedTime <= 0 {
		return nil, because(ErrMalformed, "a log entry without body, time or signature")
	}
	return &b, nil
}

func parseTimestamp(text string) (*cbundle.RFC3161Timestamp, error) {
	if strings.TrimSpace(text) == "" || strings.TrimSpace(text) == "null" {
		return nil, nil
	}
	var t cbundle.RFC3161Timestamp
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return nil, fmt.Errorf("%w: timestamp: %w", ErrMalformed, err)
	}
	if len(t.SignedRFC3161Timestamp) == 0 {
		return nil, because(ErrMalformed, "an empty timestamp")
	}
	return &t, nil
}

// about refuses a layer that does not name the digest.
func (l *layer) about(subject digest.Digest) error {
	if l.envelope != nil {
		return l.statement.about(subject)
	}
	return l.simple.about(subject)
}

// checkSignature looks at the signature alone.
func (l *layer) checkSignature(ctx context.Context, v signature.Verifier) error {
	if l.envelope != nil {
		return checkEnvelope(ctx, v, l.envelope)
	}
	return v.VerifySignature(bytes.NewReader(l.sig), bytes.NewReader(l.payload))
}

func checkEnvelope(ctx context.Context, v signature.Verifier, env *dsse.Envelope) error {
	ev, err := dsse.NewEnvelopeVerifier(&sigdsse.VerifierAdapter{SignatureVerifier: v})
	if err != nil {
		return err
	}
	_, err = ev.Verify(ctx, env)
	return err
}

// signature is the layer as cosign takes it. The chain annotation stays out:
// chains are built from the trusted root only.
func (l *layer) signature(withCert bool) (oci.Signature, error) {
	var opts []static.Option
	if l.cert != nil && withCert {
		opts = append(opts, static.WithCertChain(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.cert.Raw}), nil))
	}
	if l.entry != nil {
		opts = append(opts, static.WithBundle(l.entry))
	}
	if l.timestamp != nil {
		opts = append(opts, static.WithRFC3161Timestamp(l.timestamp))
	}
	if l.envelope != nil {
		return static.NewAttestation(l.payload, opts...)
	}
	return static.NewSignature(l.payload, base64.StdEncoding.EncodeToString(l.sig), opts...)
}

// timestamped returns the time that an authority vouches for. cosign takes the
// first of none when no authority does, so this comes before cosign.
func (l *layer) timestamped(material root.TrustedMaterial) (time.Time, error) {
	if l.timestamp == nil {
		return time.Time{}, because(ErrUntrustedTime, "no timestamp")
	}
	over := l.sig
	if l.envelope != nil {
		over = l.payload // cosign stamps the whole envelope of an attestation
	}
	found, err := verify.VerifySignedTimestampWithThreshold(&stamped{signature: over, stamp: l.timestamp.SignedRFC3161Timestamp}, material, 1)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", ErrUntrustedTime, err)
	}
	return found[0].Time, nil
}

// stamped is a timestamp and what it stamps, as sigstore-go takes them.
type stamped struct {
	verify.BaseSignedEntity
	signature, stamp []byte
}

// Timestamps implements verify.SignedEntity.
func (s *stamped) Timestamps() ([][]byte, error) { return [][]byte{s.stamp}, nil }

// SignatureContent implements verify.SignedEntity.
func (s *stamped) SignatureContent() (verify.SignatureContent, error) { return s, nil }

// Signature implements verify.SignatureContent.
func (s *stamped) Signature() []byte { return s.signature }

// EnvelopeContent implements verify.SignatureContent.
func (s *stamped) EnvelopeContent() verify.EnvelopeContent { return nil }

// MessageSignatureContent implements verify.SignatureContent.
func (s *stamped) MessageSignatureContent() verify.MessageSignatureContent { return nil }
