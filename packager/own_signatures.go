package packager

import (
	"bytes"
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

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/packager/internal/signer"
)

// ownSignatures recognises what a key has signed before, so that a release that is run
// again does not pile up signatures. It decides nothing about trust. Without a
// key, as for keyless signers, it recognises nothing.
type ownSignatures struct{ key crypto.PublicKey }

func newOwnSignatures(publicPEM []byte) (ownSignatures, error) {
	if publicPEM == nil {
		return ownSignatures{}, nil
	}
	block, _ := pem.Decode(publicPEM)
	if block == nil {
		return ownSignatures{}, fmt.Errorf("%w: no public half", ErrKey)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return ownSignatures{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return ownSignatures{key}, nil
}

func (o ownSignatures) known() bool { return o.key != nil }

// sameLayer says whether a legacy layer holds the same claim, signed by the key
// and with at least the same proofs.
func (o ownSignatures) sameLayer(payload []byte, annotations map[string]string, want signer.Layer) bool {
	for name := range want.Annotations {
		if _, ok := annotations[name]; !ok {
			return false
		}
	}
	if encoded := annotations[artifact.AnnotationSignature]; encoded != "" {
		sig, err := base64.StdEncoding.DecodeString(encoded)
		return err == nil && bytes.Equal(payload, want.Payload) && o.verifies(payload, sig)
	}
	return o.sameEnvelope(payload, want.Payload)
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

func (o ownSignatures) sameEnvelope(have, want []byte) bool {
	var a, b envelope
	if json.Unmarshal(have, &a) != nil || json.Unmarshal(want, &b) != nil {
		return false
	}
	return o.same(a, b)
}

func (o ownSignatures) same(have, want envelope) bool {
	if have.PayloadType != want.PayloadType || !bytes.Equal(have.Payload, want.Payload) || len(have.Signatures) != 1 {
		return false
	}
	// The pre-authentication encoding of DSSE v1.
	message := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(have.PayloadType), have.PayloadType, len(have.Payload), have.Payload)
	return o.verifies(message, have.Signatures[0].Sig)
}

// sameBundle compares sigstore bundles.
func (o ownSignatures) sameBundle(have, want []byte) bool {
	type bundle struct {
		Material struct {
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
		len(a.Material.Timestamps.RFC3161) >= len(b.Material.Timestamps.RFC3161) && o.same(a.Envelope, b.Envelope)
}

func (o ownSignatures) verifies(message, sig []byte) bool {
	sum := sha256.Sum256(message)
	switch key := o.key.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, sum[:], sig)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], sig) == nil
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, sig)
	}
	return false
}
