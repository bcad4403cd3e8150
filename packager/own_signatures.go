package packager

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/packager/internal/signer"
)

// ownSignatures recognises what a signer has signed before, so that a release that
// is run again does not pile up signatures. It decides nothing about trust.
type ownSignatures struct {
	// key is that of a signer with a key.
	key crypto.PublicKey
	// certificate is that of a keyless signer, issuer the one that issued it: another
	// one of the same issuer for the same identity is as good.
	certificate, issuer *x509.Certificate
}

func newOwnSignatures(s *signer.Signer) (ownSignatures, error) {
	publicPEM := s.PublicKey()
	if publicPEM == nil {
		certificate, issuer := s.Certificate()
		return ownSignatures{certificate: certificate, issuer: issuer}, nil
	}
	block, _ := pem.Decode(publicPEM)
	if block == nil {
		return ownSignatures{}, fmt.Errorf("%w: no public half", ErrKey)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return ownSignatures{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return ownSignatures{key: key}, nil
}

// among says whether one of the layers under a tag holds what a new layer would.
func (o ownSignatures) among(ctx context.Context, from Content, layers []ocispec.Descriptor, want signer.Layer) (bool, error) {
	digest := artifact.Describe(want.MediaType, want.Payload).Digest
	for _, d := range layers {
		if d.MediaType != want.MediaType || d.Size > 2*int64(len(want.Payload))+artifact.ManifestLimit {
			continue // another kind of thing, or far larger than the same claim would be
		}
		if d.Digest == digest && d.Annotations[artifact.AnnotationSignature] == want.Annotations[artifact.AnnotationSignature] {
			return true, nil // it was written a moment ago
		}
		payload, err := from.FetchAll(ctx, d, d.Size)
		if err != nil {
			return false, err
		}
		if o.sameLayer(payload, d.Annotations, want) {
			return true, nil
		}
	}
	return false, nil
}

// signedBy returns the key of the signer if a certificate, if there is one, is the
// signer's; else nil.
func (o ownSignatures) signedBy(der []byte) crypto.PublicKey {
	if o.certificate == nil {
		return o.key
	}
	other, err := x509.ParseCertificate(der)
	if err != nil || o.issuer == nil || other.CheckSignatureFrom(o.issuer) != nil {
		return nil
	}
	mine, err := signer.ReadCertificate(o.certificate)
	if err != nil {
		return nil
	}
	theirs, err := signer.ReadCertificate(other)
	if err != nil || mine.Identity == "" || mine.Identity != theirs.Identity || mine.Issuer != theirs.Issuer {
		return nil
	}
	return other.PublicKey
}

// sameLayer says whether a legacy layer holds the same claim, signed by the signer
// and with at least the same proofs.
func (o ownSignatures) sameLayer(payload []byte, annotations map[string]string, want signer.Layer) bool {
	for name := range want.Annotations {
		if _, ok := annotations[name]; !ok {
			return false
		}
	}
	var der []byte
	if block, _ := pem.Decode([]byte(annotations[artifact.AnnotationCertificate])); block != nil {
		der = block.Bytes
	}
	key := o.signedBy(der)
	if encoded := annotations[artifact.AnnotationSignature]; encoded != "" {
		sig, err := base64.StdEncoding.DecodeString(encoded)
		return err == nil && bytes.Equal(payload, want.Payload) && verifies(key, payload, sig)
	}
	var a, b envelope
	return json.Unmarshal(payload, &a) == nil && json.Unmarshal(want.Payload, &b) == nil && sameEnvelope(key, a, b)
}

// envelope is DSSE's JSON form.
// https://github.com/secure-systems-lab/dsse/blob/v1.0.2/envelope.md
type envelope struct {
	PayloadType string `json:"payloadType"`
	Payload     []byte `json:"payload"`
	Signatures  []struct {
		Sig []byte `json:"sig"`
	} `json:"signatures"`
}

func sameEnvelope(key crypto.PublicKey, have, want envelope) bool {
	if have.PayloadType != want.PayloadType || !sameStatement(have.Payload, want.Payload) || len(have.Signatures) != 1 {
		return false
	}
	// The pre-authentication encoding of DSSE v1.
	message := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(have.PayloadType), have.PayloadType, len(have.Payload), have.Payload)
	return verifies(key, message, have.Signatures[0].Sig)
}

// sameStatement says whether two statements say the same. Which run of a build said
// it does not count: a second attempt of a pipeline has no more to say than the
// first, and each would leave its provenance behind.
func sameStatement(have, want []byte) bool {
	if bytes.Equal(have, want) {
		return true
	}
	type statement struct {
		Type          string          `json:"_type"`
		Subject       json.RawMessage `json:"subject"`
		PredicateType string          `json:"predicateType"`
		Predicate     struct {
			Definition json.RawMessage `json:"buildDefinition"`
			Run        struct {
				Builder  json.RawMessage `json:"builder"`
				Metadata json.RawMessage `json:"metadata"`
			} `json:"runDetails"`
		} `json:"predicate"`
	}
	read := func(content []byte) (s statement, ok bool) {
		decoder := json.NewDecoder(bytes.NewReader(content))
		decoder.DisallowUnknownFields()
		ok = decoder.Decode(&s) == nil && s.PredicateType == artifact.PredicateProvenance
		return s, ok
	}
	a, ok := read(have)
	b, comparable := read(want)
	return ok && comparable && a.Type == b.Type && bytes.Equal(a.Subject, b.Subject) &&
		bytes.Equal(a.Predicate.Definition, b.Predicate.Definition) && bytes.Equal(a.Predicate.Run.Builder, b.Predicate.Run.Builder)
}

// sameBundle compares sigstore bundles.
func (o ownSignatures) sameBundle(have, want []byte) bool {
	type bundle struct {
		Material struct {
			Certificate struct {
				RawBytes []byte `json:"rawBytes"`
			} `json:"certificate"`
			Entries    []json.RawMessage `json:"tlogEntries"`
			Timestamps struct {
				RFC3161 []json.RawMessage `json:"rfc3161Timestamps"`
			} `json:"timestampVerificationData"`
		} `json:"verificationMaterial"`
		Envelope envelope `json:"dsseEnvelope"`
	}
	var a, b bundle
	if json.Unmarshal(have, &a) != nil || json.Unmarshal(want, &b) != nil {
		return false
	}
	return len(a.Material.Entries) >= len(b.Material.Entries) &&
		len(a.Material.Timestamps.RFC3161) >= len(b.Material.Timestamps.RFC3161) &&
		sameEnvelope(o.signedBy(a.Material.Certificate.RawBytes), a.Envelope, b.Envelope)
}

func verifies(key crypto.PublicKey, message, sig []byte) bool {
	sum := sha256.Sum256(message)
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, sum[:], sig)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], sig) == nil
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, sig)
	}
	return false
}
