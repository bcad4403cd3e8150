package sigstore

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore/pkg/cryptoutils/goodkey"
	"github.com/sigstore/sigstore/pkg/signature"
	sigdsse "github.com/sigstore/sigstore/pkg/signature/dsse"
)

// Verifier verifies signatures of one key with every hash that signers of that
// kind of key use: cosign's legacy format hashes with SHA-256 whatever the curve,
// bundles hash with the curve's own.
type Verifier struct {
	key         crypto.PublicKey
	der         []byte
	certificate *x509.Certificate
	hashes      []signature.Verifier
}

// NewVerifier returns the verifier of a bare key: ECDSA over P-256, P-384 or
// P-521, RSA of 2048, 3072 or 4096 bits, or Ed25519. It refuses other keys, and
// those that are known to be weak.
func NewVerifier(key crypto.PublicKey) (*Verifier, error) {
	if err := goodkey.ValidatePubKey(key); err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	hashes, err := hashesOf(key)
	if err != nil {
		return nil, err
	}
	return &Verifier{key: key, der: der, hashes: hashes}, nil
}

// NewCertificateVerifier returns the verifier of the key that a certificate is
// for. It does not verify the certificate: see [Chains].
func NewCertificateVerifier(certificate *x509.Certificate) (*Verifier, error) {
	v, err := NewVerifier(certificate.PublicKey)
	if err != nil {
		return nil, err
	}
	v.certificate = certificate
	return v, nil
}

func hashesOf(key crypto.PublicKey) ([]signature.Verifier, error) {
	hashes := []crypto.Hash{crypto.SHA256}
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		switch k.Curve.Params().BitSize {
		case 384:
			hashes = append(hashes, crypto.SHA384)
		case 521:
			hashes = append(hashes, crypto.SHA512)
		}
	case *rsa.PublicKey:
	case ed25519.PublicKey:
		plain, err := signature.LoadED25519Verifier(k)
		if err != nil {
			return nil, err
		}
		prehashed, err := signature.LoadED25519phVerifier(k)
		if err != nil {
			return nil, err
		}
		return []signature.Verifier{plain, prehashed}, nil
	default:
		return nil, fmt.Errorf("keys of type %T are not supported", key)
	}
	var all []signature.Verifier
	for _, h := range hashes {
		v, err := signature.LoadVerifier(key, h)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// KeyID is the SHA-256 of the key in DER form.
func (v *Verifier) KeyID() [sha256.Size]byte { return sha256.Sum256(v.der) }

// PEM is the certificate, or the key of a bare key.
func (v *Verifier) PEM() *pem.Block {
	if v.certificate != nil {
		return &pem.Block{Type: "CERTIFICATE", Bytes: v.certificate.Raw}
	}
	return &pem.Block{Type: "PUBLIC KEY", Bytes: v.der}
}

// PublicKey implements signature.Verifier.
func (v *Verifier) PublicKey(...signature.PublicKeyOption) (crypto.PublicKey, error) {
	return v.key, nil
}

// VerifySignature implements signature.Verifier.
func (v *Verifier) VerifySignature(sig, message io.Reader, opts ...signature.VerifyOption) error {
	s, err := io.ReadAll(sig)
	if err != nil {
		return err
	}
	m, err := io.ReadAll(message)
	if err != nil {
		return err
	}
	var refusals []error
	for _, h := range v.hashes {
		err := h.VerifySignature(bytes.NewReader(s), bytes.NewReader(m), opts...)
		if err == nil {
			return nil
		}
		refusals = append(refusals, err)
	}
	return errors.Join(refusals...)
}

// Verify verifies the signature itself, and none of its proofs.
func (v *Verifier) Verify(ctx context.Context, s *Signature) error {
	if s.Envelope == nil {
		return v.VerifySignature(bytes.NewReader(s.Value), bytes.NewReader(s.Message))
	}
	envelope, err := dsse.NewEnvelopeVerifier(&sigdsse.VerifierAdapter{SignatureVerifier: v})
	if err != nil {
		return err
	}
	_, err = envelope.Verify(ctx, s.Envelope)
	return err
}

// entered is what a log entry names as the signer, in DER: the certificate if
// there is one, the key's own in cosign's legacy form included, or the key. An
// entry that names another certificate for the same key is one that the owner of
// the key does not find by it.
func (v *Verifier) entered(s *Signature) ([]byte, error) {
	switch {
	case v.certificate != nil:
		return v.certificate.Raw, nil
	case s.Certificate == nil:
		return v.der, nil
	}
	key, ok := s.Certificate.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !key.Equal(v.key) {
		return nil, errors.New("the certificate beside the signature is for another key")
	}
	return s.Certificate.Raw, nil
}
