package sigstore

import (
	"bytes"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// ReadAnnotations adds the proofs of a layer of cosign's legacy form, which are
// in its annotations. The annotation with a chain stays out: chains are built from
// the trusted root only.
func (s *Signature) ReadAnnotations(annotations map[string]string) (err error) {
	if s.Certificate, err = parseCertificate(annotations[artifact.AnnotationCertificate]); err != nil {
		return err
	}
	if text := annotations[artifact.AnnotationLogEntry]; strings.TrimSpace(text) != "" {
		entry, err := ParseEntry(text)
		if err != nil {
			return fmt.Errorf("log entry: %w", err)
		}
		if entry != nil {
			s.Entries = append(s.Entries, entry)
		}
	}
	if text := annotations[artifact.AnnotationTimestamp]; strings.TrimSpace(text) != "" {
		stamp, err := ParseTimestamp(text)
		if err != nil {
			return fmt.Errorf("timestamp: %w", err)
		}
		if stamp != nil {
			s.Timestamps = append(s.Timestamps, stamp)
		}
	}
	return nil
}

// parseCertificate reads exactly one PEM certificate, nil from "".
func parseCertificate(text string) (*x509.Certificate, error) {
	if text == "" {
		return nil, nil
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("the certificate annotation does not hold exactly one certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

// annotatedEntry is an entry of a version 1 log as cosign writes it into an
// annotation.
type annotatedEntry struct {
	SignedEntryTimestamp []byte
	Payload              struct {
		Body           []byte `json:"body"`
		IntegratedTime int64  `json:"integratedTime"`
		LogIndex       int64  `json:"logIndex"`
		LogID          string `json:"logID"`
	}
}

// annotatedTimestamp is a timestamp as cosign writes it into an annotation.
type annotatedTimestamp struct {
	SignedRFC3161Timestamp []byte
}

// ParseEntry reads an entry of a version 1 log from an annotation, nil from null.
func ParseEntry(annotation string) (*protorekor.TransparencyLogEntry, error) {
	var a *annotatedEntry
	if err := json.Unmarshal([]byte(annotation), &a); err != nil || a == nil {
		return nil, err
	}
	id, err := hex.DecodeString(a.Payload.LogID)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	if len(a.SignedEntryTimestamp) == 0 || len(a.Payload.Body) == 0 || a.Payload.IntegratedTime <= 0 {
		return nil, errors.New("a log entry without body, time or signature")
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex: a.Payload.LogIndex, LogId: &protocommon.LogId{KeyId: id}, IntegratedTime: a.Payload.IntegratedTime,
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: a.SignedEntryTimestamp},
		CanonicalizedBody: a.Payload.Body,
	}, nil
}

// EncodeEntry writes an entry of a version 1 log as [ParseEntry] reads it.
func EncodeEntry(e *protorekor.TransparencyLogEntry) (string, error) {
	var a annotatedEntry
	a.SignedEntryTimestamp = e.GetInclusionPromise().GetSignedEntryTimestamp()
	a.Payload.Body, a.Payload.IntegratedTime = e.GetCanonicalizedBody(), e.GetIntegratedTime()
	a.Payload.LogIndex, a.Payload.LogID = e.GetLogIndex(), logID(e)
	text, err := json.Marshal(a)
	return string(text), err
}

// ParseTimestamp reads the response of a timestamp authority from an annotation,
// nil from null.
func ParseTimestamp(annotation string) ([]byte, error) {
	var a *annotatedTimestamp
	if err := json.Unmarshal([]byte(annotation), &a); err != nil || a == nil {
		return nil, err
	}
	if len(a.SignedRFC3161Timestamp) == 0 {
		return nil, errors.New("an empty timestamp")
	}
	return a.SignedRFC3161Timestamp, nil
}

// EncodeTimestamp writes a response as [ParseTimestamp] reads it.
func EncodeTimestamp(stamp []byte) (string, error) {
	text, err := json.Marshal(annotatedTimestamp{stamp})
	return string(text), err
}
