package sigstore_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/cosign/v2/pkg/cosign"
	cosignbundle "github.com/sigstore/cosign/v2/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v2/pkg/oci/static"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
)

// rekor is a version 1 log with one entry.
type rekor struct {
	root.BaseTrustedMaterial
	key *ecdsa.PrivateKey
	id  [sha256.Size]byte
}

func newKey(tb testing.TB) (*ecdsa.PrivateKey, []byte) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		tb.Fatal(err)
	}
	return key, der
}

func newRekor(tb testing.TB) *rekor {
	tb.Helper()
	key, der := newKey(tb)
	return &rekor{key: key, id: sha256.Sum256(der)}
}

// RekorLogs implements root.TrustedMaterial.
func (r *rekor) RekorLogs() map[string]*root.TransparencyLog {
	return map[string]*root.TransparencyLog{hex.EncodeToString(r.id[:]): {
		ID: r.id[:], PublicKey: r.key.Public(), ValidityPeriodStart: time.Unix(1, 0), SignatureHashFunc: crypto.SHA256, HashFunc: crypto.SHA256,
	}}
}

// enter writes a body into the log and returns the entry as cosign annotates it.
func (r *rekor) enter(tb testing.TB, body []byte) string {
	tb.Helper()
	promise := fmt.Appendf(nil, `{"body":%q,"integratedTime":1767225600,"logID":"%x","logIndex":7}`, base64.StdEncoding.EncodeToString(body), r.id)
	sum := sha256.Sum256(promise)
	set, err := ecdsa.SignASN1(rand.Reader, r.key, sum[:])
	if err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprintf(`{"SignedEntryTimestamp":%q,"Payload":%s}`, base64.StdEncoding.EncodeToString(set), promise)
}

// TestEntryKinds: an entry of each kind is accepted as cosign accepts it, and
// only for the signature that it is about.
func TestEntryKinds(t *testing.T) {
	t.Parallel()
	log := newRekor(t)
	key, der := newKey(t)
	by, err := sigstore.NewVerifier(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signature.LoadVerifier(key.Public(), crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(message []byte) string {
		sum := sha256.Sum256(message)
		sig, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(sig)
	}
	hash := func(content []byte) string {
		return fmt.Sprintf(`{"algorithm":"sha256","value":"%x"}`, sha256.Sum256(content))
	}
	signer := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))

	message, statement := []byte("message"), []byte(`{"_type":"statement"}`)
	sig, attested := sign(message), sign(dsse.PAE("application/vnd.in-toto+json", statement))
	envelope := fmt.Appendf(nil, `{"payload":%q,"payloadType":"application/vnd.in-toto+json","signatures":[{"sig":%q}]}`,
		base64.StdEncoding.EncodeToString(statement), attested)
	twice := base64.StdEncoding.EncodeToString([]byte(attested))

	for kind, c := range map[string]struct {
		attestation bool
		spec        string
	}{
		"hashedrekord 0.0.1": {false, fmt.Sprintf(`{"data":{"hash":%s},"signature":{"content":%q,"publicKey":{"content":%q}}}`, hash(message), sig, signer)},
		"rekord 0.0.1":       {false, fmt.Sprintf(`{"data":{"hash":%s},"signature":{"content":%q,"format":"x509","publicKey":{"content":%q}}}`, hash(message), sig, signer)},
		"dsse 0.0.1":         {true, fmt.Sprintf(`{"envelopeHash":%s,"payloadHash":%s,"signatures":[{"signature":%q,"verifier":%q}]}`, hash(envelope), hash(statement), attested, signer)},
		"intoto 0.0.1":       {true, fmt.Sprintf(`{"content":{"hash":%s},"publicKey":%q}`, hash(envelope), signer)},
		"intoto 0.0.2": {true, fmt.Sprintf(`{"content":{"envelope":{"payloadType":"application/vnd.in-toto+json","signatures":[{"publicKey":%q,"sig":%q}]},"hash":%s,"payloadHash":%s}}`,
			signer, twice, hash(envelope), hash(statement))},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var name, version string
			if _, err := fmt.Sscan(kind, &name, &version); err != nil {
				t.Fatal(err)
			}
			annotation := log.enter(t, fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"spec":%s}`, version, name, c.spec))
			var theirs cosignbundle.RekorBundle
			if err := json.Unmarshal([]byte(annotation), &theirs); err != nil {
				t.Fatal(err)
			}
			oci, err := static.NewSignature(message, sig, static.WithBundle(&theirs))
			ours := &sigstore.Signature{Message: message, Value: mustDecode(t, sig)}
			if c.attestation {
				oci, err = static.NewAttestation(envelope, static.WithBundle(&theirs))
				ours = &sigstore.Signature{Encoded: envelope, Envelope: &dsse.Envelope{}}
			}
			if err != nil {
				t.Fatal(err)
			}
			entry, err := sigstore.ParseEntry(annotation)
			if err != nil {
				t.Fatal(err)
			}
			ours.Entries = []*protorekor.TransparencyLogEntry{entry}
			if ok, err := cosign.VerifyBundle(oci, &cosign.CheckOpts{TrustedMaterial: log, SigVerifier: verifier, Offline: true}); !ok || err != nil {
				t.Errorf("cosign: %v", err)
			}
			if logged, err := sigstore.VerifyLog(ours, by, log); err != nil || logged[0] != (sigstore.Logged{Index: 7, Time: time.Unix(1767225600, 0)}) {
				t.Errorf("ours: %v, %v", logged, err)
			}
			refuseOthers(t, ours, by, log)
		})
	}
}

// refuseOthers alters what an entry is about, and who looks at it.
func refuseOthers(tb testing.TB, s *sigstore.Signature, by *sigstore.Verifier, log *rekor) {
	tb.Helper()
	other := *s
	if s.Encoded != nil {
		other.Encoded = append(bytes.Clone(s.Encoded), '\n')
	} else {
		other.Message = append(bytes.Clone(s.Message), '\n')
	}
	if _, err := sigstore.VerifyLog(&other, by, log); err == nil {
		tb.Error("an entry about other content")
	}
	if s.Encoded == nil {
		other = *s
		other.Value = append(bytes.Clone(s.Value), 0)
		if _, err := sigstore.VerifyLog(&other, by, log); err == nil {
			tb.Error("an entry about another signature")
		}
	}
	stranger, _ := newKey(tb)
	another, err := sigstore.NewVerifier(stranger.Public())
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := sigstore.VerifyLog(s, another, log); err == nil {
		tb.Error("an entry by another signer")
	}
	var unknown *sigstore.UnknownLogError
	if _, err := sigstore.VerifyLog(s, by, newRekor(tb)); !errors.As(err, &unknown) || unknown.Log != hex.EncodeToString(log.id[:]) {
		tb.Errorf("a log that nobody knows: %v", err)
	}
	other = *s
	other.Entries = append(other.Entries, s.Entries...)
	if _, err := sigstore.VerifyLog(&other, by, log); err == nil {
		tb.Error("an entry twice")
	}
}

// TestEntryNamesTheKey: an entry that names another certificate for the same key
// is not the key's, since the key's owner would not find it.
func TestEntryNamesTheKey(t *testing.T) {
	t.Parallel()
	log := newRekor(t)
	key, _ := newKey(t)
	by, err := sigstore.NewVerifier(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signature.LoadVerifier(key.Public(), crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	stranger, _ := newKey(t)
	certify := func(of *ecdsa.PrivateKey) []byte {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, of.Public(), stranger)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	own, other := certify(key), certify(stranger)
	message := []byte("message")
	sum := sha256.Sum256(message)
	value, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString(value)
	annotation := log.enter(t, fmt.Appendf(nil, `{"apiVersion":"0.0.1","kind":"hashedrekord","spec":{"data":{"hash":{"algorithm":"sha256","value":"%x"}},"signature":{"content":%q,"publicKey":{"content":%q}}}}`,
		sum, text, base64.StdEncoding.EncodeToString(own)))
	var bundle cosignbundle.RekorBundle
	if err := json.Unmarshal([]byte(annotation), &bundle); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		beside []byte
		ok     bool
	}{"nothing beside it": {nil, false}, "beside the certificate": {own, true}, "beside another's": {other, false}} {
		annotations := map[string]string{artifact.AnnotationLogEntry: annotation}
		options := []static.Option{static.WithBundle(&bundle)}
		if c.beside != nil {
			annotations[artifact.AnnotationCertificate] = string(c.beside)
			options = append(options, static.WithCertChain(c.beside, nil))
		}
		oci, err := static.NewSignature(message, text, options...)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := cosign.VerifyBundle(oci, &cosign.CheckOpts{TrustedMaterial: log, SigVerifier: verifier, Offline: true}); (ok && err == nil) != c.ok {
			t.Errorf("cosign, %s: %v", name, err)
		}
		ours := &sigstore.Signature{Message: message, Value: value}
		if err := ours.ReadAnnotations(annotations); err != nil {
			t.Fatal(err)
		}
		if _, err := sigstore.VerifyLog(ours, by, log); (err == nil) != c.ok {
			t.Errorf("ours, %s: %v", name, err)
		}
	}
}

// TestBundleVersions: only those that were published.
func TestBundleVersions(t *testing.T) {
	t.Parallel()
	for mediaType, ok := range map[string]bool{
		"application/vnd.dev.sigstore.bundle+json;version=0.1": true, "application/vnd.dev.sigstore.bundle+json;version=0.2": true,
		"application/vnd.dev.sigstore.bundle+json;version=0.3": true, "application/vnd.dev.sigstore.bundle.v0.3+json": true,
		"application/vnd.dev.sigstore.bundle+json;version=0.2.5": false, "application/vnd.dev.sigstore.bundle.v0.3.1+json": false,
		"application/vnd.dev.sigstore.bundle.v0.4+json": false, "application/vnd.dev.sigstore.bundle+json;version=0.0": false, "": false,
	} {
		_, err := sigstore.ParseBundle(fmt.Appendf(nil, `{"mediaType":%q,"verificationMaterial":{"publicKey":{}},"messageSignature":{"signature":"AA=="}}`, mediaType))
		if ok != (err == nil) || !ok && !errors.Is(err, sigstore.ErrUnsupportedBundle) {
			t.Errorf("%s: %v", mediaType, err)
		}
	}
}

func mustDecode(tb testing.TB, text string) []byte {
	tb.Helper()
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// TestKinds: signers hash with SHA-256 or with what goes with the curve.
func TestKinds(t *testing.T) {
	t.Parallel()
	message := []byte("message")
	for name, generate := range map[string]func() (crypto.Signer, error){
		"P-256":   func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) },
		"P-384":   func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) },
		"P-521":   func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P521(), rand.Reader) },
		"RSA":     func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) },
		"Ed25519": func() (crypto.Signer, error) { _, key, err := ed25519.GenerateKey(rand.Reader); return key, err },
	} {
		key, err := generate()
		if err != nil {
			t.Fatal(err)
		}
		by, err := sigstore.NewVerifier(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		short, err := signature.LoadSigner(key, crypto.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		own, err := signature.LoadDefaultSigner(key)
		if err != nil {
			t.Fatal(err)
		}
		for _, signer := range []signature.Signer{short, own} {
			sig, err := signer.SignMessage(bytes.NewReader(message))
			if err != nil {
				t.Fatal(err)
			}
			if err := by.Verify(t.Context(), &sigstore.Signature{Message: message, Value: sig}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			sig[len(sig)/2] ^= 1
			if err := by.Verify(t.Context(), &sigstore.Signature{Message: message, Value: sig}); err == nil {
				t.Errorf("%s: accepts an altered signature", name)
			}
		}
	}
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []crypto.PublicKey{"key", small.Public(), newForger(1024, 65537).public, newForger(1<<16, 65537).public} {
		if _, err := sigstore.NewVerifier(key); err == nil {
			t.Errorf("accepts a key of type %T", key)
		}
	}
}

func TestAnnotations(t *testing.T) {
	t.Parallel()
	log := newRekor(t)
	entry, err := sigstore.ParseEntry(log.enter(t, []byte(`{}`)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := sigstore.EncodeEntry(entry)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sigstore.ParseEntry(text)
	if err != nil || again.String() != entry.String() {
		t.Errorf("entry: %v, %v", again, err)
	}
	if text, err = sigstore.EncodeTimestamp([]byte("stamp")); err != nil {
		t.Fatal(err)
	}
	if stamp, err := sigstore.ParseTimestamp(text); err != nil || string(stamp) != "stamp" {
		t.Errorf("timestamp: %q, %v", stamp, err)
	}
	for _, nothing := range []string{"null", " null "} {
		if entry, err := sigstore.ParseEntry(nothing); entry != nil || err != nil {
			t.Errorf("entry %q: %v, %v", nothing, entry, err)
		}
	}
}

// FuzzParseBundle: a bundle from anywhere is read or refused.
func FuzzParseBundle(f *testing.F) {
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"x"}},"dsseEnvelope":{"payload":"e30=","payloadType":"t","signatures":[{"sig":"AA=="}]}}`))
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle+json;version=0.1","verificationMaterial":{"x509CertificateChain":{"certificates":[{}]}},"messageSignature":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := sigstore.ParseBundle(raw)
		if err == nil && s.Envelope != nil && len(s.Envelope.Signatures) != 1 {
			t.Errorf("%d signatures", len(s.Envelope.Signatures))
		}
	})
}
