package sigstore

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/radome-io/fleeting-plugin-openstack/internal/jsonbound"
)

// Signature is one signature with its proofs: what evidence claims, read and not
// verified.
type Signature struct {
	// Value is the signature, nil if Encoded is set: an encoded envelope may
	// have several.
	Value []byte
	// Message is what was signed, if Envelope is nil.
	Message []byte
	// Envelope holds what was signed and its signatures, in the DSSE form.
	Envelope *dsse.Envelope
	// Encoded is the envelope as JSON if its proofs cover these very bytes, as
	// in cosign's attestations under tags. The proofs of a bundle cover payload
	// and signature instead.
	Encoded []byte
	// Certificate is the signer's certificate, nil if a bare key signed.
	Certificate *x509.Certificate
	// KeyHint names the key in a bundle. Nothing signs it.
	KeyHint string
	// Entries are entries in transparency logs.
	Entries []*protorekor.TransparencyLogEntry
	// Timestamps are responses of timestamp authorities.
	Timestamps [][]byte
}

// The most entries and timestamps that one signature may have, as in sigstore-go,
// and the most values of JSON in a bundle and in the body of an entry.
const (
	maxEntries    = 32
	maxTimestamps = 32
	maxValues     = 10_000
	maxBodyValues = 1000
)

// ErrUnsupportedBundle reports a bundle of a version that is not known.
var ErrUnsupportedBundle = errors.New("unsupported version of bundle")

// ParseBundle reads a sigstore bundle of version 0.1 to 0.3, as JSON. Errors
// other than [ErrUnsupportedBundle] are about malformed bundles.
func ParseBundle(json []byte) (*Signature, error) {
	if err := jsonbound.Check(json, maxValues); err != nil {
		return nil, err
	}
	var b protobundle.Bundle
	if err := protojson.Unmarshal(json, &b); err != nil {
		return nil, err
	}
	return FromBundle(&b)
}

// FromBundle is [ParseBundle] for a bundle in memory.
func FromBundle(b *protobundle.Bundle) (*Signature, error) {
	version, err := bundleVersion(b.GetMediaType())
	if err != nil {
		return nil, err
	}
	s := &Signature{Entries: b.GetVerificationMaterial().GetTlogEntries()}
	if err := s.readContent(b); err != nil {
		return nil, err
	}
	if err := s.readSigner(b.GetVerificationMaterial(), version); err != nil {
		return nil, err
	}
	if err := s.checkEntries(version); err != nil {
		return nil, err
	}
	stamps := b.GetVerificationMaterial().GetTimestampVerificationData().GetRfc3161Timestamps()
	if len(stamps) > maxTimestamps {
		return nil, fmt.Errorf("%d timestamps, more than %d", len(stamps), maxTimestamps)
	}
	for _, t := range stamps {
		s.Timestamps = append(s.Timestamps, t.GetSignedTimestamp())
	}
	return s, nil
}

// bundleVersion reads the version of a bundle's media type: at first a parameter,
// then a part of the name. No others were published.
func bundleVersion(mediaType string) (string, error) {
	const base = "application/vnd.dev.sigstore.bundle"
	for _, version := range []string{"0.1", "0.2", "0.3"} {
		if mediaType == base+"+json;version="+version || mediaType == base+".v"+version+"+json" {
			return version, nil
		}
	}
	return "", fmt.Errorf("%w: media type %q", ErrUnsupportedBundle, mediaType)
}

func (s *Signature) readContent(b *protobundle.Bundle) error {
	switch content := b.GetContent().(type) {
	case *protobundle.Bundle_DsseEnvelope:
		return s.readEnvelope(content.DsseEnvelope)
	case *protobundle.Bundle_MessageSignature:
		s.Value = content.MessageSignature.GetSignature()
		return nil
	}
	return errors.New("a bundle without a signature")
}

func (s *Signature) readEnvelope(e *protodsse.Envelope) error {
	// DSSE allows several signatures, a bundle has exactly one.
	if n := len(e.GetSignatures()); n != 1 {
		return fmt.Errorf("an envelope with %d signatures, where a bundle has exactly one", n)
	}
	s.Value = e.GetSignatures()[0].GetSig()
	s.Envelope = &dsse.Envelope{
		PayloadType: e.GetPayloadType(), Payload: base64.StdEncoding.EncodeToString(e.GetPayload()),
		Signatures: []dsse.Signature{{KeyID: e.GetSignatures()[0].GetKeyid(), Sig: base64.StdEncoding.EncodeToString(s.Value)}},
	}
	return nil
}

func (s *Signature) readSigner(material *protobundle.VerificationMaterial, version string) (err error) {
	switch content := material.GetContent().(type) {
	case *protobundle.VerificationMaterial_PublicKey:
		s.KeyHint = content.PublicKey.GetHint()
		return nil
	case *protobundle.VerificationMaterial_Certificate:
		s.Certificate, err = x509.ParseCertificate(content.Certificate.GetRawBytes())
		return err
	case *protobundle.VerificationMaterial_X509CertificateChain:
		chain := content.X509CertificateChain.GetCertificates()
		if len(chain) == 0 || version == "0.3" {
			return fmt.Errorf("a certificate chain of length %d in a bundle of version %s", len(chain), version)
		}
		// The rest of the chain is not used: chains are built from the trusted
		// root only.
		s.Certificate, err = x509.ParseCertificate(chain[0].GetRawBytes())
		return err
	}
	return errors.New("a bundle without a key or a certificate")
}

// checkEntries refuses entries that are incomplete, and bundles whose entries
// all lack what their version asks for.
func (s *Signature) checkEntries(version string) error {
	if len(s.Entries) == 0 {
		return nil
	}
	if len(s.Entries) > maxEntries {
		return fmt.Errorf("%d log entries, more than %d", len(s.Entries), maxEntries)
	}
	promised, proved := false, false
	for _, e := range s.Entries {
		if e.GetKindVersion() == nil || len(e.GetLogId().GetKeyId()) == 0 || e.GetLogIndex() < 0 {
			return errors.New("a log entry without kind, log or index")
		}
		if e.GetInclusionProof() != nil && e.GetInclusionProof().GetCheckpoint().GetEnvelope() == "" {
			return errors.New("a log entry with an inclusion proof without a checkpoint")
		}
		if _, err := readEntry(e.GetCanonicalizedBody()); err != nil {
			return err
		}
		promised = promised || len(e.GetInclusionPromise().GetSignedEntryTimestamp()) > 0
		proved = proved || e.GetInclusionProof() != nil
	}
	if version == "0.1" {
		proved = promised
	}
	if !proved {
		return fmt.Errorf("log entries without the proof that a bundle of version %s has", version)
	}
	return nil
}

// stamped is what timestamps are over.
func (s *Signature) stamped() []byte {
	if s.Encoded != nil {
		return s.Encoded
	}
	return s.Value
}
