package signer

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/cryptoutils/goodkey"
	"github.com/sigstore/sigstore/pkg/signature"
)

// PEM types of private keys. The first is what `cosign generate-key-pair`
// writes, the second what cosign before 2.0 wrote.
const (
	pemSigstore = "ENCRYPTED SIGSTORE PRIVATE KEY"
	pemCosign   = "ENCRYPTED COSIGN PRIVATE KEY"
	pemPKCS8    = "PRIVATE KEY"
	pemEC       = "EC PRIVATE KEY"
	pemRSA      = "RSA PRIVATE KEY"
	pemPublic   = "PUBLIC KEY"
)

// GenerateKeyPair makes an ECDSA P-256 key as `cosign generate-key-pair` does:
// the private half encrypted with the password (which may be empty, as with
// cosign), the public half in PEM.
func GenerateKeyPair(password []byte) (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the key: %w", err)
	}
	if password == nil {
		password = []byte{}
	}
	sealed, err := encrypted.Encrypt(der, password)
	if err != nil {
		return nil, nil, fmt.Errorf("encrypting the key: %w", err)
	}
	public, err = cryptoutils.MarshalPublicKeyToPEM(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemSigstore, Bytes: sealed}), public, nil
}

// Encrypted reports whether the PEM text is a private key that needs a
// password.
func Encrypted(pemBytes []byte) bool {
	block, _ := pem.Decode(pemBytes)
	return block != nil && (block.Type == pemSigstore || block.Type == pemCosign)
}

// parseKey reads a private key; errors wrap ErrKey or ErrPassword.
func parseKey(pemBytes, password []byte) (crypto.Signer, error) {
	block, rest := pem.Decode(pemBytes)
	if block != nil && block.Type == "EC PARAMETERS" {
		block, rest = pem.Decode(rest) // openssl ecparam writes them before the key, which names its curve itself
	}
	if block == nil {
		return nil, fmt.Errorf("%w: no PEM block", ErrKey)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("%w: data after the PEM block", ErrKey)
	}
	key, err := decodeKey(block, password)
	if err != nil {
		return nil, err
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%w: a key of type %T", ErrKey, key)
	}
	if err := goodkey.ValidatePubKey(s.Public()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return s, nil
}

func decodeKey(block *pem.Block, password []byte) (key any, err error) {
	switch block.Type {
	case pemSigstore, pemCosign:
		der, err := encrypted.Decrypt(block.Bytes, password)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPassword, err)
		}
		key, err = x509.ParsePKCS8PrivateKey(der)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKey, err)
		}
		return key, nil
	case pemPKCS8:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case pemEC:
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case pemRSA:
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case pemPublic:
		return nil, fmt.Errorf("%w: it is a public key", ErrKey)
	case "ENCRYPTED PRIVATE KEY":
		return nil, fmt.Errorf("%w: it has a password of openssl's; openssl pkey takes it off, cosign import-key-pair gives it one of cosign's", ErrKey)
	default:
		return nil, fmt.Errorf("%w: PEM block %q", ErrKey, block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return key, nil
}

// keypair signs as cosign does: SHA-256 for every ECDSA and RSA key, since
// that is what `cosign verify --key` assumes, and plain Ed25519.
type keypair struct {
	key       crypto.Signer
	signer    signature.Signer
	algorithm protocommon.PublicKeyDetails
	publicPEM []byte
	hint      string
}

func newKeypair(key crypto.Signer) (*keypair, error) {
	s, err := signature.LoadSigner(key, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	details, err := signature.GetDefaultAlgorithmDetails(key.Public())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	publicPEM, err := cryptoutils.MarshalPublicKeyToPEM(key.Public())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	sum := sha256.Sum256(der)
	return &keypair{
		key: key, signer: s, algorithm: details.GetSignatureAlgorithm(), publicPEM: publicPEM,
		hint: base64.StdEncoding.EncodeToString(sum[:]),
	}, nil
}

// GetHashAlgorithm implements sign.Keypair.
func (k *keypair) GetHashAlgorithm() protocommon.HashAlgorithm {
	return protocommon.HashAlgorithm_SHA2_256
}

// GetSigningAlgorithm implements sign.Keypair.
func (k *keypair) GetSigningAlgorithm() protocommon.PublicKeyDetails { return k.algorithm }

// GetHint implements sign.Keypair.
func (k *keypair) GetHint() []byte { return []byte(k.hint) }

// GetKeyAlgorithm implements sign.Keypair; Fulcio reads it.
func (k *keypair) GetKeyAlgorithm() string {
	switch k.key.Public().(type) {
	case *ecdsa.PublicKey:
		return "ECDSA"
	case *rsa.PublicKey:
		return "RSA"
	case ed25519.PublicKey:
		return "ED25519"
	}
	return ""
}

// GetPublicKey implements sign.Keypair.
func (k *keypair) GetPublicKey() crypto.PublicKey { return k.key.Public() }

// GetPublicKeyPem implements sign.Keypair.
func (k *keypair) GetPublicKeyPem() (string, error) { return string(k.publicPEM), nil }

// SignData implements sign.Keypair.
func (k *keypair) SignData(_ context.Context, data []byte) (sig, digest []byte, err error) {
	sig, err = k.signer.SignMessage(bytes.NewReader(data))
	sum := sha256.Sum256(data)
	return sig, sum[:], err
}
