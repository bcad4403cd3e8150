package artifact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// metadataLimit bounds the JSON of AnnotationMetadata, in bytes.
const metadataLimit = 16 << 10

// Metadata is what a plugin's publisher says about the plugin's contract with
// its host. It travels as JSON in AnnotationMetadata. Every field is optional;
// readers ignore fields that they do not know, so that later versions may add
// some.
type Metadata struct {
	// Protocol is the go-plugin protocol version that the plugin speaks. All
	// fleeting plugins so far speak 0.
	Protocol *int `json:"protocol,omitempty"`
	// Library is the module version of gitlab.com/gitlab-org/fleeting/fleeting
	// that the plugin was built with.
	Library string `json:"library,omitempty"`
	// MinimumRunner is the oldest GitLab Runner known to work, such as "17.9".
	MinimumRunner string `json:"minimumRunner,omitempty"`
}

// IsZero reports whether the publisher said nothing.
func (m Metadata) IsZero() bool { return m == Metadata{} }

// Encode returns the JSON for AnnotationMetadata.
func (m Metadata) Encode() (string, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("encoding plugin metadata: %w", err)
	}
	return string(b), nil
}

// DecodeMetadata reads AnnotationMetadata. It returns ErrInvalid for anything
// but one JSON object of at most 16 KiB.
func DecodeMetadata(s string) (Metadata, error) {
	var m Metadata
	if len(s) > metadataLimit {
		return m, invalid("plugin metadata of %d bytes is over %d", len(s), metadataLimit)
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(s)))
	if err := dec.Decode(&m); err != nil {
		return m, invalid("plugin metadata: %v", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return m, invalid("plugin metadata: data after the JSON object")
	}
	return m, nil
}
