package sigstore

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
)

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
