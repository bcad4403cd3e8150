package signer

import (
	"context"
	"crypto"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// Signer signs. It is safe for use by several goroutines at once.
type Signer struct {
	keys      *keypair
	certifier *certifier // nil with a key
	services  Services
	material  root.TrustedMaterial // nil without a trusted root
}

// Signed is one signature or attestation in both forms.
type Signed struct {
	// Legacy is the layer for the tag `.sig` or `.att`.
	Legacy Layer
	// Bundle is a sigstore bundle, version 0.3, for a referrer.
	Bundle []byte
	// PredicateType is the bundle's.
	PredicateType string
}

// Layer is a layer of an image manifest, not yet pushed.
type Layer struct {
	MediaType   string
	Payload     []byte
	Annotations map[string]string
}

// FromKey signs with a private key: cosign's encrypted form, or PKCS #8, SEC 1
// or PKCS #1 in plain PEM, for which the password is ignored. The services prove
// each signature. Errors wrap [ErrKey], [ErrPassword] or [ErrOptions].
func FromKey(pemBytes, password []byte, services Services) (*Signer, error) {
	if err := services.check(); err != nil {
		return nil, err
	}
	key, err := parseKey(pemBytes, password)
	if err != nil {
		return nil, err
	}
	s := &Signer{services: services}
	if s.keys, err = newKeypair(key); err != nil {
		return nil, err
	}
	if s.material, err = loadRoot(services.TrustedRoot); err != nil || s.material == nil {
		return s, err
	}
	v, err := signature.LoadVerifier(key.Public(), crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	s.material = keyMaterial{TrustedMaterial: s.material, verifier: root.NewExpiringKey(v, time.Time{}, time.Time{})}
	return s, nil
}

// Keyless signs with a certificate that Fulcio gives for an identity token. The
// key behind it is made here and never leaves memory. Errors wrap [ErrOptions]
// or [ErrToken].
func Keyless(options KeylessOptions) (*Signer, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	material, err := loadRoot(options.TrustedRoot)
	if err != nil {
		return nil, err
	}
	keys, err := newEphemeral()
	if err != nil {
		return nil, err
	}
	return &Signer{keys: keys, certifier: &certifier{options: options}, services: options.Services, material: material}, nil
}

// PublicKey is the public half in PEM, nil for a keyless signer, whose key
// means nothing to a verifier.
func (s *Signer) PublicKey() []byte {
	if s.certifier != nil {
		return nil
	}
	return slices.Clone(s.keys.publicPEM)
}

// SignImage signs the digest of an index or a manifest. The reference goes into
// the legacy payload as the name under which it is published, without tag or
// digest, as cosign writes it; it may be empty.
func (s *Signer) SignImage(ctx context.Context, reference string, d digest.Digest) (Signed, error) {
	payload, err := simpleSigning(reference, d)
	if err != nil {
		return Signed{}, err
	}
	statement, err := statementOf([]Subject{{Digest: d}}, artifact.PredicateSignature, nil)
	if err != nil {
		return Signed{}, err
	}
	message, err := s.sign(ctx, &sign.PlainData{Data: payload})
	if err != nil {
		return Signed{}, err
	}
	legacy, err := s.signatureLayer(payload, message)
	if err != nil {
		return Signed{}, err
	}
	envelope, err := s.sign(ctx, &sign.DSSEData{Data: statement, PayloadType: artifact.PayloadTypeStatement})
	if err != nil {
		return Signed{}, err
	}
	return signed(legacy, envelope, artifact.PredicateSignature)
}

// Attest signs a statement about the subjects, at least one: the predicate,
// which is JSON, of the type, which is a URI. One envelope serves both forms.
func (s *Signer) Attest(ctx context.Context, subjects []Subject, predicateType string, predicate []byte) (Signed, error) {
	envelope, err := s.attest(ctx, subjects, predicateType, predicate)
	if err != nil {
		return Signed{}, err
	}
	legacy, err := s.attestationLayer(ctx, envelope, predicateType)
	if err != nil {
		return Signed{}, err
	}
	return signed(legacy, envelope, predicateType)
}

// AttestBundle is [Signer.Attest] for what is not in a registry: only the bundle
// is made.
func (s *Signer) AttestBundle(ctx context.Context, subjects []Subject, predicateType string, predicate []byte) ([]byte, error) {
	b, err := s.attest(ctx, subjects, predicateType, predicate)
	if err != nil {
		return nil, err
	}
	return marshal(b)
}

func (s *Signer) attest(ctx context.Context, subjects []Subject, predicateType string, predicate []byte) (*protobundle.Bundle, error) {
	statement, err := statementOf(subjects, predicateType, predicate)
	if err != nil {
		return nil, err
	}
	return s.sign(ctx, &sign.DSSEData{Data: statement, PayloadType: artifact.PayloadTypeStatement})
}

// SignBlob signs plain bytes, such as a list of checksums, and returns a
// bundle that `cosign verify-blob --bundle` reads.
func (s *Signer) SignBlob(ctx context.Context, content []byte) ([]byte, error) {
	b, err := s.sign(ctx, &sign.PlainData{Data: content})
	if err != nil {
		return nil, err
	}
	return marshal(b)
}

func (s *Signer) sign(ctx context.Context, content sign.Content) (*protobundle.Bundle, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	opts := s.bundleOptions(ctx)
	var watch watched
	if s.material != nil {
		watch.TrustedMaterial = s.material
		opts.TrustedRoot = &watch
	}
	b, err := sign.Bundle(content, s.keys, opts)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, asSigned(err, watch.asked.Load())
	}
	return b, nil
}

func signed(legacy Layer, b *protobundle.Bundle, predicateType string) (Signed, error) {
	raw, err := marshal(b)
	return Signed{Legacy: legacy, Bundle: raw, PredicateType: predicateType}, err
}

func marshal(b *protobundle.Bundle) ([]byte, error) {
	raw, err := protojson.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encoding the bundle: %w", err)
	}
	return raw, nil
}

func loadRoot(json []byte) (root.TrustedMaterial, error) {
	if len(json) == 0 {
		return nil, nil
	}
	m, err := root.NewTrustedRootFromJSON(json)
	if err != nil {
		return nil, fmt.Errorf("%w: trusted root: %w", ErrOptions, err)
	}
	return m, nil
}

// keyMaterial is a trusted root that also trusts one key.
type keyMaterial struct {
	root.TrustedMaterial
	verifier root.TimeConstrainedVerifier
}

// PublicKeyVerifier implements root.TrustedMaterial.
func (m keyMaterial) PublicKeyVerifier(string) (root.TimeConstrainedVerifier, error) {
	return m.verifier, nil
}
