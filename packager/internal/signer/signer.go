package signer

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
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
	s.material, err = loadRoot(services.TrustedRoot)
	return s, err
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

// TagsLackLog says that log entries are in bundles alone: the legacy form has no
// place for those of Rekor version 2.
func (s *Signer) TagsLackLog() bool { return s.services.RekorVersion == 2 }

// PublicKey is the public half in PEM, nil for a keyless signer, whose key
// means nothing to a verifier.
func (s *Signer) PublicKey() []byte {
	if s.certifier != nil {
		return nil
	}
	return slices.Clone(s.keys.publicPEM)
}

// Certificate is the certificate of a keyless signer that has signed something,
// with the one that issued it if that is known; both are nil with a key.
func (s *Signer) Certificate() (certificate, issuer *x509.Certificate) {
	if s.certifier == nil {
		return nil, nil
	}
	s.certifier.mu.Lock()
	defer s.certifier.mu.Unlock()
	return s.certifier.cert, s.certifier.issuer
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
	message, err := s.sign(ctx, content{message: payload})
	if err != nil {
		return Signed{}, err
	}
	legacy, err := s.signatureLayer(payload, message)
	if err != nil {
		return Signed{}, err
	}
	envelope, err := s.sign(ctx, content{statement: statement})
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
	return s.sign(ctx, content{statement: statement})
}

// SignBlob signs plain bytes, such as a list of checksums, and returns a
// bundle that `cosign verify-blob --bundle` reads.
func (s *Signer) SignBlob(ctx context.Context, message []byte) ([]byte, error) {
	b, err := s.sign(ctx, content{message: message})
	if err != nil {
		return nil, err
	}
	return marshal(b)
}

// content is something to sign: a message, or a statement in an envelope.
type content struct {
	message   []byte
	statement []byte
}

// sign signs content and proves the signature with the services.
func (s *Signer) sign(ctx context.Context, c content) (*protobundle.Bundle, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b := &protobundle.Bundle{MediaType: artifact.MediaTypeBundle, VerificationMaterial: &protobundle.VerificationMaterial{}}
	if err := s.signContent(b, c); err != nil {
		return nil, err
	}
	by, err := s.nameSigner(ctx, b)
	if err == nil {
		err = s.prove(ctx, b, c, by)
	}
	if err != nil {
		return nil, asService(ctx, err)
	}
	if s.material != nil {
		if err := s.check(ctx, b, c, by); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTrustedRoot, err)
		}
	}
	return b, nil
}

// asService names the error of a service, unless it is that of the token or the end
// of the context.
func asService(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrToken):
		return err
	}
	return fmt.Errorf("%w: %w", ErrService, err)
}

func (s *Signer) signContent(b *protobundle.Bundle, c content) error {
	message := c.message
	if c.statement != nil {
		message = dsse.PAE(artifact.PayloadTypeStatement, c.statement)
	}
	sig, err := s.keys.sign(message)
	if err != nil {
		return fmt.Errorf("signing: %w", err)
	}
	if c.statement != nil {
		b.Content = &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: c.statement, PayloadType: artifact.PayloadTypeStatement, Signatures: []*protodsse.Signature{{Sig: sig}},
		}}
		return nil
	}
	sum := sha256.Sum256(message)
	b.Content = &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
		MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]}, Signature: sig,
	}}
	return nil
}

// nameSigner puts the certificate into the bundle, or the name of the key.
func (s *Signer) nameSigner(ctx context.Context, b *protobundle.Bundle) (*sigstore.Verifier, error) {
	if s.certifier == nil {
		b.VerificationMaterial.Content = &protobundle.VerificationMaterial_PublicKey{
			PublicKey: &protocommon.PublicKeyIdentifier{Hint: s.keys.hint()},
		}
		return s.keys.verifier, nil
	}
	cert, err := s.certifier.certificate(ctx, s.keys)
	if err != nil {
		return nil, err
	}
	b.VerificationMaterial.Content = &protobundle.VerificationMaterial_Certificate{
		Certificate: &protocommon.X509Certificate{RawBytes: cert.Raw},
	}
	return sigstore.NewCertificateVerifier(cert)
}

// prove adds the proofs of the services that are asked for: a timestamp over the
// signature, and an entry in the log.
func (s *Signer) prove(ctx context.Context, b *protobundle.Bundle, c content, by *sigstore.Verifier) error {
	if s.services.TSAURL == "" && s.services.RekorURL == "" {
		return nil
	}
	made, err := read(b, c)
	if err != nil {
		return err
	}
	if s.services.TSAURL != "" {
		stamp, err := s.services.stamp(ctx, made.Value)
		if err != nil {
			return err
		}
		b.VerificationMaterial.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: stamp}},
		}
	}
	if s.services.RekorURL != "" {
		entry, err := s.services.enter(ctx, b, made, by)
		if err != nil {
			return err
		}
		b.VerificationMaterial.TlogEntries = []*protorekor.TransparencyLogEntry{entry}
	}
	return nil
}

func read(b *protobundle.Bundle, c content) (*sigstore.Signature, error) {
	made, err := sigstore.FromBundle(b)
	if err != nil {
		return nil, err
	}
	made.Message = c.message
	return made, nil
}

// check verifies what was made as a verifier with the trusted root would.
func (s *Signer) check(ctx context.Context, b *protobundle.Bundle, c content, by *sigstore.Verifier) error {
	made, err := read(b, c)
	if err != nil {
		return err
	}
	if err := by.Verify(ctx, made); err != nil {
		return err
	}
	var times []time.Time
	if s.services.TSAURL != "" {
		if times, err = sigstore.VerifyTimestamps(made, s.material); err != nil {
			return err
		}
	}
	if s.services.RekorURL != "" {
		logged, err := sigstore.VerifyLog(made, by, s.material)
		if err != nil {
			return err
		}
		for _, l := range logged {
			if !l.Time.IsZero() {
				times = append(times, l.Time)
			}
		}
	}
	if made.Certificate == nil {
		return nil
	}
	if len(times) == 0 {
		return errors.New("nothing proves when it was signed")
	}
	for _, at := range times {
		if _, err := sigstore.Chains(made.Certificate, at, s.material); err != nil {
			return err
		}
	}
	return nil
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
