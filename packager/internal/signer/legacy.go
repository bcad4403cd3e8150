package signer

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
)

// signatureLayer turns the signature of a simple signing payload into a layer.
// Log entry and timestamp are over the same bytes in both forms.
func (s *Signer) signatureLayer(payload []byte, b *protobundle.Bundle) (Layer, error) {
	annotations := map[string]string{
		artifact.AnnotationSignature: base64.StdEncoding.EncodeToString(b.GetMessageSignature().GetSignature()),
	}
	for _, t := range b.GetVerificationMaterial().GetTimestampVerificationData().GetRfc3161Timestamps() {
		if err := setTimestamp(annotations, t.GetSignedTimestamp()); err != nil {
			return Layer{}, err
		}
	}
	err := s.setProofs(annotations, b)
	return Layer{MediaType: artifact.MediaTypeSimpleSigning, Payload: payload, Annotations: annotations}, err
}

// attestationLayer turns an envelope into a layer. The log entry names the
// hash of these very bytes; the timestamp is over them too, where a bundle's
// is over the signature, so it is another one.
func (s *Signer) attestationLayer(ctx context.Context, b *protobundle.Bundle, predicateType string) (Layer, error) {
	payload, err := json.Marshal(b.GetDsseEnvelope())
	if err != nil {
		return Layer{}, fmt.Errorf("encoding the envelope: %w", err)
	}
	annotations := map[string]string{artifact.AnnotationSignature: "", artifact.AnnotationPredicateType: predicateType}
	if s.services.TSAURL != "" {
		stamp, err := s.services.stamp(ctx, payload)
		if err != nil {
			return Layer{}, fmt.Errorf("%w: %w", ErrService, err)
		}
		if err := setTimestamp(annotations, stamp); err != nil {
			return Layer{}, err
		}
	}
	err = s.setProofs(annotations, b)
	return Layer{MediaType: artifact.MediaTypeDSSE, Payload: payload, Annotations: annotations}, err
}

// setProofs adds certificate and log entry. The legacy form has no place for a
// Rekor v2 entry; there the timestamp alone proves the time.
func (s *Signer) setProofs(annotations map[string]string, b *protobundle.Bundle) error {
	if der := b.GetVerificationMaterial().GetCertificate().GetRawBytes(); len(der) > 0 {
		annotations[artifact.AnnotationCertificate] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("%w: certificate: %w", ErrService, err)
		}
		if chain := chainPEM(cert, s.material); chain != "" {
			annotations[artifact.AnnotationChain] = chain
		}
	}
	for _, entry := range b.GetVerificationMaterial().GetTlogEntries() {
		if len(entry.GetInclusionPromise().GetSignedEntryTimestamp()) == 0 {
			continue
		}
		text, err := sigstore.EncodeEntry(entry)
		if err != nil {
			return fmt.Errorf("encoding the log entry: %w", err)
		}
		annotations[artifact.AnnotationLogEntry] = text
	}
	return nil
}

func setTimestamp(annotations map[string]string, stamp []byte) error {
	text, err := sigstore.EncodeTimestamp(stamp)
	if err != nil {
		return fmt.Errorf("encoding the timestamp: %w", err)
	}
	annotations[artifact.AnnotationTimestamp] = text
	return nil
}
