package trust

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/jsonbound"
)

// statement is an in-toto statement, https://github.com/in-toto/attestation
// spec v1 and v0.1. Its predicate stays as the bytes that were signed.
type statement struct {
	Type          string          `json:"_type"`
	Subject       subjects        `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// subjects are what a statement is about.
type subjects []subject

type subject struct {
	Name   string  `json:"name"`
	Digest digests `json:"digest"`
}

type digests map[string]string

// UnmarshalJSON implements json.Unmarshaler. It bounds how many there are.
func (s *subjects) UnmarshalJSON(text []byte) error {
	if err := jsonbound.Check(text, maxValues); err != nil {
		return err
	}
	type plain subjects
	return json.Unmarshal(text, (*plain)(s))
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *subject) UnmarshalJSON(text []byte) error {
	if err := jsonbound.Exact(text, "name", "digest"); err != nil {
		return err
	}
	type plain subject
	return json.Unmarshal(text, (*plain)(s))
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *digests) UnmarshalJSON(text []byte) error {
	if err := jsonbound.Exact(text); err != nil {
		return err
	}
	type plain digests
	return json.Unmarshal(text, (*plain)(d))
}

// decodeStatement reads the statement in an envelope; it verifies nothing.
func decodeStatement(env *dsse.Envelope) (statement, error) {
	if env.PayloadType != artifact.PayloadTypeStatement {
		return statement{}, because(ErrUnsupportedFormat, "payload type %q", env.PayloadType)
	}
	raw, err := base64.StdEncoding.DecodeString(env.Payload)
	if err != nil {
		return statement{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	var st statement
	if err := json.Unmarshal(raw, &st); err != nil {
		return statement{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := jsonbound.Exact(raw, "_type", "subject", "predicateType", "predicate"); err != nil {
		return statement{}, fmt.Errorf("%w: statement: %w", ErrMalformed, err)
	}
	switch st.Type {
	case artifact.TypeStatement, artifact.TypeStatementV01:
	default:
		return statement{}, because(ErrUnsupportedFormat, "statement of type %q", st.Type)
	}
	if st.PredicateType == "" {
		return statement{}, because(ErrMalformed, "a statement without a predicate type")
	}
	return st, nil
}

// about refuses a statement that does not name the digest.
func (st statement) about(subject digest.Digest) error {
	var named []string
	for _, s := range st.Subject {
		got := s.Digest[subject.Algorithm().String()]
		if got == subject.Encoded() {
			return nil
		}
		named = append(named, got)
	}
	return because(ErrWrongSubject, "the statement names %.3q", slices.Compact(named))
}

// nameOf is the first name of the digest.
func (st statement) nameOf(subject digest.Digest) string {
	for _, s := range st.Subject {
		if s.Digest[subject.Algorithm().String()] == subject.Encoded() {
			return s.Name
		}
	}
	return ""
}

// simpleSigning is the payload of cosign's legacy signature, after
// https://github.com/containers/image/blob/main/docs/containers-signature.5.md.
type simpleSigning struct {
	Critical struct {
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
}

func decodeSimpleSigning(payload []byte) (simpleSigning, error) {
	var s simpleSigning
	if len(payload) > maxSimple {
		return s, because(ErrMalformed, "a payload of %d bytes, more than %d", len(payload), maxSimple)
	}
	if err := json.Unmarshal(payload, &s); err != nil {
		return s, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if s.Critical.Type != artifact.TypeSimpleSigning {
		return s, because(ErrUnsupportedFormat, "a payload of type %q", s.Critical.Type)
	}
	return s, nil
}

// about refuses a payload that does not name the digest.
func (s simpleSigning) about(subject digest.Digest) error {
	if s.Critical.Image.Digest != subject.String() {
		return because(ErrWrongSubject, "the payload names %.80q", s.Critical.Image.Digest)
	}
	return nil
}
