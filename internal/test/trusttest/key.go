package trusttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"testing"

	"github.com/opencontainers/go-digest"
)

// Media types of the layers that carry evidence.
const (
	MediaTypeSimpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	MediaTypeDSSE          = "application/vnd.dsse.envelope.v1+json"
	MediaTypeBundle        = "application/vnd.dev.sigstore.bundle.v0.3+json"
)

// Predicate types that tests need.
const (
	PredicateSignature = "https://sigstore.dev/cosign/sign/v1"
	PredicateSLSA      = "https://slsa.dev/provenance/v1"
	PredicateSPDX      = "https://spdx.dev/Document"
	PredicateCycloneDX = "https://cyclonedx.org/bom"
)

const (
	payloadTypeInToto   = "application/vnd.in-toto+json"
	annotationSignature = "dev.cosignproject.cosign/signature"
)

// Layer is a piece of evidence as it lies in a manifest.
type Layer struct {
	MediaType   string
	Payload     []byte
	Annotations map[string]string
}

// Key is an ECDSA P-256 key pair.
type Key struct {
	private *ecdsa.PrivateKey
}

// NewKey makes a key pair.
func NewKey(tb testing.TB) *Key {
	tb.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return &Key{private: k}
}

// PublicPEM is the public half as `cosign.pub` has it.
func (k *Key) PublicPEM(tb testing.TB) []byte {
	tb.Helper()
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: k.der(tb)})
}

// PrivatePEM is the private half in plain PKCS #8: no password, and none of
// the time that cosign's encryption takes.
func (k *Key) PrivatePEM(tb testing.TB) []byte {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// ID is the hex SHA-256 of the public key in DER form.
func (k *Key) ID(tb testing.TB) string {
	tb.Helper()
	return fmt.Sprintf("%x", sha256.Sum256(k.der(tb)))
}

// Sign makes a legacy signature of the digest, for the tag `.sig`.
func (k *Key) Sign(tb testing.TB, d digest.Digest) Layer {
	tb.Helper()
	return k.SignPayload(tb, []byte(`{"critical":{"identity":{"docker-reference":"registry.example/plugin"},"image":{"docker-manifest-digest":"`+
		d.String()+`"},"type":"cosign container image signature"},"optional":null}`))
}

// SignPayload makes a legacy signature of any payload.
func (k *Key) SignPayload(tb testing.TB, payload []byte) Layer {
	tb.Helper()
	return Layer{
		MediaType: MediaTypeSimpleSigning, Payload: payload,
		Annotations: map[string]string{annotationSignature: base64.StdEncoding.EncodeToString(k.sign(tb, payload))},
	}
}

// Attest makes a legacy attestation of the digest, for the tag `.att`.
func (k *Key) Attest(tb testing.TB, d digest.Digest, predicateType, predicate string) Layer {
	tb.Helper()
	return Layer{
		MediaType:   MediaTypeDSSE,
		Payload:     encode(tb, k.envelope(tb, payloadTypeInToto, Statement(d, predicateType, predicate))),
		Annotations: map[string]string{annotationSignature: "", "predicateType": predicateType},
	}
}

// SignBundle makes a signature of the digest as a bundle, as cosign 3 does.
func (k *Key) SignBundle(tb testing.TB, d digest.Digest) Layer {
	tb.Helper()
	return k.AttestBundle(tb, d, PredicateSignature, "{}")
}

// AttestBundle makes an attestation of the digest as a bundle.
func (k *Key) AttestBundle(tb testing.TB, d digest.Digest, predicateType, predicate string) Layer {
	tb.Helper()
	return k.BundleOf(tb, payloadTypeInToto, Statement(d, predicateType, predicate))
}

// BundleOf signs any payload in an envelope in a bundle.
func (k *Key) BundleOf(tb testing.TB, payloadType string, payload []byte) Layer {
	tb.Helper()
	sum := sha256.Sum256(k.der(tb))
	return Layer{MediaType: MediaTypeBundle, Payload: encode(tb, map[string]any{
		"mediaType": MediaTypeBundle,
		"verificationMaterial": map[string]any{
			"publicKey": map[string]any{"hint": base64.StdEncoding.EncodeToString(sum[:])},
		},
		"dsseEnvelope": k.envelope(tb, payloadType, payload),
	})}
}

// Statement is an in-toto statement about the digest; predicate is JSON.
func Statement(d digest.Digest, predicateType, predicate string) []byte {
	return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{%q:%q}}],"predicateType":%q,"predicate":%s}`,
		d.Algorithm().String(), d.Encoded(), predicateType, predicate)
}

func (k *Key) envelope(tb testing.TB, payloadType string, payload []byte) map[string]any {
	tb.Helper()
	// The DSSE protocol, version 1: what is signed names type and lengths.
	pae := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
	return map[string]any{
		"payloadType": payloadType,
		"payload":     base64.StdEncoding.EncodeToString(payload),
		"signatures":  []any{map[string]any{"sig": base64.StdEncoding.EncodeToString(k.sign(tb, pae))}},
	}
}

func (k *Key) sign(tb testing.TB, message []byte) []byte {
	tb.Helper()
	sum := sha256.Sum256(message)
	sig, err := ecdsa.SignASN1(rand.Reader, k.private, sum[:])
	if err != nil {
		tb.Fatal(err)
	}
	return sig
}

func (k *Key) der(tb testing.TB) []byte {
	tb.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.private.Public())
	if err != nil {
		tb.Fatal(err)
	}
	return der
}

func encode(tb testing.TB, v any) []byte {
	tb.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}
