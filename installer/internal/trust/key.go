package trust

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/cryptoutils/goodkey"
	"github.com/sigstore/sigstore/pkg/signature"
)

// publicKey verifies signatures of one key with every hash that signers of
// that kind of key use: cosign's legacy format hashes with SHA-256 whatever
// the curve, its bundles hash with the curve's own.
type publicKey struct {
	pub       crypto.PublicKey
	verifiers []signature.Verifier
	id        string // hex SHA-256 of the key's DER form
	hint      string // the same in base64, as bundles name keys
}

func parsePublicKey(pemBytes []byte) (*publicKey, error) {
	block, rest := pem.Decode(pemBytes)
	switch {
	case block == nil:
		return nil, because(ErrRequirement, "no PEM block in the public key")
	case block.Type != "PUBLIC KEY":
		return nil, because(ErrRequirement, "PEM block %q where PUBLIC KEY is expected", block.Type)
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, because(ErrRequirement, "data after the public key")
	}
	pub, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequirement, err)
	}
	if err := goodkey.ValidatePubKey(pub); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequirement, err)
	}
	verifiers, err := verifiersFor(pub)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequirement, err)
	}
	sum := sha256.Sum256(block.Bytes)
	return &publicKey{
		pub: pub, verifiers: verifiers,
		id: hex.EncodeToString(sum[:]), hint: base64.StdEncoding.EncodeToString(sum[:]),
	}, nil
}

func verifiersFor(pub crypto.PublicKey) ([]signature.Verifier, error) {
	hashes := []crypto.Hash{crypto.SHA256}
	switch k := pub.(type) {
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
		return nil, fmt.Errorf("keys of type %T are not supported", pub)
	}
	var all []signature.Verifier
	for _, h := range hashes {
		v, err := signature.LoadVerifier(pub, h)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// PublicKey implements signature.Verifier.
func (k *publicKey) PublicKey(...signature.PublicKeyOption) (crypto.PublicKey, error) {
	return k.pub, nil
}

// VerifySignature implements signature.Verifier.
func (k *publicKey) VerifySignature(sig, message io.Reader, opts ...signature.VerifyOption) error {
	s, err := io.ReadAll(sig)
	if err != nil {
		return err
	}
	m, err := io.ReadAll(message)
	if err != nil {
		return err
	}
	var refusals []error
	for _, v := range k.verifiers {
		err := v.VerifySignature(bytes.NewReader(s), bytes.NewReader(m), opts...)
		if err == nil {
			return nil
		}
		refusals = append(refusals, err)
	}
	return errors.Join(refusals...)
}

// withKey is trust material that knows one key and nothing else of its own.
type withKey struct {
	root.TrustedMaterial
	key *publicKey
}

// PublicKeyVerifier answers with the one key, whatever name the evidence gives
// to it: the name is not signed, the signature decides.
func (m withKey) PublicKeyVerifier(string) (root.TimeConstrainedVerifier, error) {
	if m.key == nil {
		return nil, errors.New("no key is trusted")
	}
	return root.NewExpiringKey(m.key, time.Time{}, time.Time{}), nil
}
