package packager

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/packager/internal/signer"
)

// authority issues certificates as Fulcio does.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, key}
}

func (a authority) issue(t *testing.T, identity string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	uri, err := url.Parse(identity)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Minute), URIs: []*url.URL{uri},
	}, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// attested is a statement, signed, in both forms.
func attested(t *testing.T, certificate *x509.Certificate, key *ecdsa.PrivateKey, statement string) signer.Signed {
	t.Helper()
	const kind = "application/vnd.in-toto+json"
	sum := sha256.Sum256(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement))
	sig, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]any{"payloadType": kind, "payload": []byte(statement), "signatures": []any{map[string]any{"sig": sig}}}
	payload, err := json.Marshal(env)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := json.Marshal(map[string]any{
		"verificationMaterial": map[string]any{"certificate": map[string]any{"rawBytes": certificate.Raw}}, "dsseEnvelope": env,
	})
	if err != nil {
		t.Fatal(err)
	}
	return signer.Signed{Bundle: bundle, Legacy: signer.Layer{MediaType: artifact.MediaTypeDSSE, Payload: payload, Annotations: map[string]string{
		artifact.AnnotationCertificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})),
		artifact.AnnotationSignature:   "",
	}}}
}

// TestKeylessSignaturesAreRecognised: what the same identity signed before, with
// another certificate of the same authority, is not published again; what another
// one signed, or an authority of the attacker's own vouches for, is none of it.
func TestKeylessSignaturesAreRecognised(t *testing.T) {
	t.Parallel()
	const me = "https://github.com/me/plugin/.github/workflows/release.yml@refs/tags/v1.0.0"
	fulcio, forger := newAuthority(t), newAuthority(t)
	certificate, key := fulcio.issue(t, me)
	own := ownSignatures{certificate: certificate, issuer: fulcio.certificate}
	want := attested(t, certificate, key, `{"a":1}`)
	for name, c := range map[string]struct {
		authority authority
		identity  string
		statement string
		same      bool
	}{
		"the same":                 {fulcio, me, `{"a":1}`, true},
		"another statement":        {fulcio, me, `{"a":2}`, false},
		"another identity":         {fulcio, me + "-x", `{"a":1}`, false},
		"an authority of its own":  {forger, me, `{"a":1}`, false},
		"nobody in particular":     {fulcio, "", `{"a":1}`, false},
		"the same, but for a path": {fulcio, me + "/..", `{"a":1}`, false},
	} {
		other, otherKey := c.authority.issue(t, c.identity)
		have := attested(t, other, otherKey, c.statement)
		if got := own.sameBundle(have.Bundle, want.Bundle); got != c.same {
			t.Errorf("%s: bundle recognised = %v", name, got)
		}
		if got := own.sameLayer(have.Legacy.Payload, have.Legacy.Annotations, want.Legacy); got != c.same {
			t.Errorf("%s: layer recognised = %v", name, got)
		}
	}
	// A signature that is not that of the certificate's key.
	_, strange := fulcio.issue(t, me)
	forged := attested(t, certificate, strange, `{"a":1}`)
	if own.sameBundle(forged.Bundle, want.Bundle) {
		t.Error("a signature by another key is recognised")
	}
	if (ownSignatures{certificate: certificate}).sameBundle(want.Bundle, want.Bundle) {
		t.Error("recognised without knowing who issued the certificate")
	}
}
