package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"

	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
)

func parsePublicKey(pemBytes []byte) (*sigstore.Verifier, error) {
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
	verifier, err := sigstore.NewVerifier(pub)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequirement, err)
	}
	return verifier, nil
}

// id is the hex SHA-256 of the key's DER form.
func (k *keyRequirement) id() string {
	sum := k.verifier.KeyID()
	return hex.EncodeToString(sum[:])
}
