package artifact

// What is signed: in-toto's statements, https://github.com/in-toto/attestation
// v1, in DSSE envelopes, and cosign's older payload.
const (
	// TypeStatement is the "_type" of a statement, version 1.
	TypeStatement = "https://in-toto.io/Statement/v1"
	// TypeStatementV01 is the one before it, of which foreign publishers still
	// sign some.
	TypeStatementV01 = "https://in-toto.io/Statement/v0.1"
	// PayloadTypeStatement is the payload type of an envelope around a statement.
	PayloadTypeStatement = "application/vnd.in-toto+json"
	// TypeSimpleSigning is critical.type in cosign's payload; others are not
	// signatures of images.
	TypeSimpleSigning = "cosign container image signature"
)

// Predicate types, as cosign writes them.
const (
	// PredicateSignature says no more than "signed" (cosign 3).
	PredicateSignature = "https://sigstore.dev/cosign/sign/v1"
	// PredicateProvenance is SLSA's, https://slsa.dev/spec/v1.0/provenance.
	PredicateProvenance = "https://slsa.dev/provenance/v1"
	// PredicateSPDX is a bill of materials in SPDX's form.
	PredicateSPDX = "https://spdx.dev/Document"
	// PredicateCycloneDX is a bill of materials in CycloneDX's form.
	PredicateCycloneDX = "https://cyclonedx.org/bom"
)

// PredicateOf returns the predicate type of an attestation that repeats a document
// of the media type, "" for what is no bill of materials.
func PredicateOf(mediaType string) string {
	switch mediaType {
	case MediaTypeSPDX:
		return PredicateSPDX
	case MediaTypeCycloneDX:
		return PredicateCycloneDX
	}
	return ""
}
