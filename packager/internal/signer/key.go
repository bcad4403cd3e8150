package signer

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/cryptoutils/goodkey"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
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
		return nil, fmt.Errorf("%w: it is encrypted by openssl; decrypt it with openssl pkey, or import it with cosign import-key-pair", ErrKey)
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
	signer    signature.Signer
	verifier  *sigstore.Verifier
	publicPEM []byte
}

func newKeypair(key crypto.Signer) (*keypair, error) {
	s, err := signature.LoadSigner(key, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	verifier, err := sigstore.NewVerifier(key.Public())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return &keypair{signer: s, verifier: verifier, publicPEM: pem.EncodeToMemory(verifier.PEM())}, nil
}

// hint names the key in a bundle, as cosign does.
func (k *keypair) hint() string {
	id := k.verifier.KeyID()
	return base64.StdEncoding.EncodeToString(id[:])
}

func (k *keypair) sign(message []byte) ([]byte, error) {
	return k.signer.SignMessage(bytes.NewReader(message))
}
