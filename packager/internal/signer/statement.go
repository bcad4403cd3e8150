package signer

import (
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// Subject is what a statement is about.
type Subject struct {
	Name   string // may be empty
	Digest digest.Digest
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	Digest map[string]string `json:"digest"`
}

type statement struct {
	Type          string          `json:"_type"`
	Subject       []resource      `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate,omitempty"`
}

func statementOf(subjects []Subject, predicateType string, predicate []byte) ([]byte, error) {
	if len(subjects) == 0 {
		return nil, fmt.Errorf("%w: a statement about nothing", ErrInput)
	}
	if predicateType == "" {
		return nil, fmt.Errorf("%w: no predicate type", ErrInput)
	}
	st := statement{Type: artifact.TypeStatement, PredicateType: predicateType, Predicate: predicate}
	for _, s := range subjects {
		if err := checkDigest(s.Digest); err != nil {
			return nil, err
		}
		st.Subject = append(st.Subject, resource{Name: s.Name, Digest: map[string]string{"sha256": s.Digest.Encoded()}})
	}
	if predicate != nil {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(predicate, &object); err != nil {
			return nil, fmt.Errorf("%w: predicate: %w", ErrInput, err)
		}
		if object == nil {
			return nil, fmt.Errorf("%w: the predicate is null", ErrInput)
		}
	}
	raw, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	return raw, nil
}

func checkDigest(d digest.Digest) error {
	if err := d.Validate(); err != nil || d.Algorithm() != digest.SHA256 {
		return fmt.Errorf("%w: %q is not a sha256 digest", ErrInput, d)
	}
	return nil
}

// simpleSigning is the payload of cosign's legacy signature.
func simpleSigning(reference string, d digest.Digest) ([]byte, error) {
	if err := checkDigest(d); err != nil {
		return nil, err
	}
	type (
		identity struct {
			Reference string `json:"docker-reference"`
		}
		image struct {
			Digest string `json:"docker-manifest-digest"`
		}
		critical struct {
			Identity identity `json:"identity"`
			Image    image    `json:"image"`
			Type     string   `json:"type"`
		}
	)
	raw, err := json.Marshal(struct {
		Critical critical  `json:"critical"`
		Optional *struct{} `json:"optional"`
	}{Critical: critical{identity{reference}, image{d.String()}, artifact.TypeSimpleSigning}})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	return raw, nil
}
