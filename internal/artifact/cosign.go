package artifact

import (
	"strings"

	"github.com/opencontainers/go-digest"
)

// Media types of the layers in which evidence lies.
const (
	// MediaTypeBundle is a sigstore bundle, version 0.3: the layer of a
	// signature or attestation stored as a referrer.
	MediaTypeBundle = mediaTypeAnyBundle + ".v0.3+json"
	// MediaTypeSimpleSigning is the payload of a signature under a
	// "sha256-….sig" tag.
	MediaTypeSimpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	// MediaTypeDSSE is the envelope of an attestation under a "sha256-….att"
	// tag.
	MediaTypeDSSE = "application/vnd.dsse.envelope.v1+json"

	mediaTypeAnyBundle = "application/vnd.dev.sigstore.bundle"
)

// IsBundle reports whether a media type names a sigstore bundle of any version:
// those before 0.3 wrote it as a parameter, "…bundle+json;version=0.2".
func IsBundle(mediaType string) bool {
	rest, ok := strings.CutPrefix(mediaType, mediaTypeAnyBundle)
	return ok && (strings.HasPrefix(rest, ".v") || strings.HasPrefix(rest, "+json"))
}

// Annotations of the layers under cosign 2's tags, after
// https://github.com/sigstore/cosign/blob/v2.6.5/specs/SIGNATURE_SPEC.md.
const (
	// AnnotationSignature is the signature in base64; empty beside an envelope,
	// which holds its own.
	AnnotationSignature = "dev.cosignproject.cosign/signature"
	// AnnotationCertificate is the signer's certificate in PEM.
	AnnotationCertificate = "dev.sigstore.cosign/certificate"
	// AnnotationChain is the certificates that issued it, in PEM.
	AnnotationChain = "dev.sigstore.cosign/chain"
	// AnnotationLogEntry is an entry of a Rekor v1 log, as JSON.
	AnnotationLogEntry = "dev.sigstore.cosign/bundle"
	// AnnotationTimestamp is an RFC 3161 timestamp, as JSON.
	AnnotationTimestamp = "dev.sigstore.cosign/rfc3161timestamp"
	// AnnotationPredicateType repeats what the envelope's statement says.
	AnnotationPredicateType = "predicateType"
)

// ReferrersTag is the tag under which a registry without the referrers API lists
// what hangs off a digest, after the OCI distribution specification v1.1.1.
func ReferrersTag(d digest.Digest) string { return strings.Replace(d.String(), ":", "-", 1) }

// SignatureTag is the tag under which cosign 2 keeps signatures of a digest.
func SignatureTag(d digest.Digest) string { return ReferrersTag(d) + ".sig" }

// AttestationTag is the tag under which cosign 2 keeps attestations of a digest.
func AttestationTag(d digest.Digest) string { return ReferrersTag(d) + ".att" }
