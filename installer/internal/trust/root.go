package trust

import (
	_ "embed" // for the trusted root of the public instance
	"fmt"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore-go/pkg/root"
)

// publicRoot is the trusted root of the public sigstore instance, byte for
// byte the file examples/trusted-root-public-good.json of the Go module
// github.com/sigstore/sigstore-go v1.3.0 (Apache-2.0), which is checksummed in
// go.sum. It knows the log rekor.sigstore.dev (Rekor v1), the authority
// fulcio.sigstore.dev, its certificate logs and the public timestamp
// authority. It does not know the public Rekor v2 logs, which change every
// year: a signature from those needs a newer root, given as a file.
//
//go:embed public_root.json
var publicRoot []byte

// TrustedRoot is the trust material of a sigstore instance: certificate
// authorities, logs and timestamp authorities, with their validity.
type TrustedRoot struct {
	material *root.TrustedRoot
	// digest is that of the JSON text.
	digest digest.Digest
}

// MarshalText gives the digest of the JSON text that the root was read from.
func (r *TrustedRoot) MarshalText() ([]byte, error) { return []byte(r.digest), nil }

// LoadTrustedRoot reads a trusted root (media type
// application/vnd.dev.sigstore.trustedroot+json;version=0.1), such as `cosign
// trusted-root create` writes. A root without any certificate authority, log
// or timestamp authority is refused, since nothing could verify with it.
func LoadTrustedRoot(json []byte) (*TrustedRoot, error) {
	if len(json) > MaxPayload {
		return nil, fmt.Errorf("trusted root of %d bytes", len(json))
	}
	m, err := root.NewTrustedRootFromJSON(json)
	if err != nil {
		return nil, fmt.Errorf("trusted root: %w", err)
	}
	if len(m.FulcioCertificateAuthorities())+len(m.RekorLogs())+len(m.TimestampingAuthorities()) == 0 {
		return nil, fmt.Errorf("trusted root: %w", because(ErrRequirement, "it has no authorities"))
	}
	return &TrustedRoot{material: m, digest: digest.FromBytes(json)}, nil
}

// PublicTrustedRoot returns the trusted root of the public sigstore instance
// that is built in; see publicRoot for its source and its limits.
func PublicTrustedRoot() (*TrustedRoot, error) { return LoadTrustedRoot(publicRoot) }

// PublicTrustedRootJSON returns the bytes behind [PublicTrustedRoot], for
// tools that write them beside a mirror.
func PublicTrustedRootJSON() []byte { return append([]byte(nil), publicRoot...) }
