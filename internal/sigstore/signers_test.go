package sigstore_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/sigstore/sigstore-go/pkg/root"
	"golang.org/x/crypto/cryptobyte"
	cryptoasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
)

// clock is a timestamp authority, trusted as a root that certifies it.
type clock struct {
	root.BaseTrustedMaterial
	key        *ecdsa.PrivateKey
	ca, leaf   *x509.Certificate
	begin, end time.Time
}

func newClock(tb testing.TB) *clock {
	tb.Helper()
	c := &clock{begin: time.Now().Add(-time.Hour), end: time.Now().Add(time.Hour)}
	caKey, _ := newKey(tb)
	c.key, _ = newKey(tb)
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}}) // id-kp-timeStamping
	if err != nil {
		tb.Fatal(err)
	}
	issue := func(template, parent *x509.Certificate, public, key any) *x509.Certificate {
		template.NotBefore, template.NotAfter, template.BasicConstraintsValid = c.begin, c.end, true
		der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
		if err != nil {
			tb.Fatal(err)
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			tb.Fatal(err)
		}
		return certificate
	}
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign}
	c.ca = issue(authority, authority, caKey.Public(), caKey)
	c.leaf = issue(&x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "clock"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}},
	}, c.ca, c.key.Public(), caKey)
	return c
}

// TimestampingAuthorities implements root.TrustedMaterial.
func (c *clock) TimestampingAuthorities() []root.TimestampingAuthority {
	return []root.TimestampingAuthority{&root.SigstoreTimestampingAuthority{Root: c.ca, Leaf: c.leaf, ValidityPeriodStart: c.begin, ValidityPeriodEnd: c.end, URI: "https://clock.test"}}
}

// stamp is a timestamp over "value".
func (c *clock) stamp(tb testing.TB, certified bool) []byte {
	tb.Helper()
	sum := sha256.Sum256([]byte("value"))
	stamp, err := (&timestamp.Timestamp{
		HashAlgorithm: crypto.SHA256, HashedMessage: sum[:], Time: time.Now().Truncate(time.Second), AddTSACertificate: certified, Policy: asn1.ObjectIdentifier{1, 2, 3},
	}).CreateResponseWithOpts(c.leaf, c.key, crypto.SHA256)
	if err != nil {
		tb.Fatal(err)
	}
	return stamp
}

// signedParts are what a timestamp's token has one after another: version, digest
// algorithms, content, certificates where it has some, signers (RFC 5652, section 5.1).
func signedParts(tb testing.TB, response []byte) (status, kind cryptobyte.String, parts []cryptobyte.String) {
	tb.Helper()
	text := cryptobyte.String(response)
	var token, explicit, signed cryptobyte.String
	if !text.ReadASN1(&text, cryptoasn1.SEQUENCE) || !text.ReadASN1Element(&status, cryptoasn1.SEQUENCE) || !text.ReadASN1(&token, cryptoasn1.SEQUENCE) ||
		!token.ReadASN1Element(&kind, cryptoasn1.OBJECT_IDENTIFIER) || !token.ReadASN1(&explicit, cryptoasn1.Tag(0).ContextSpecific().Constructed()) ||
		!explicit.ReadASN1(&signed, cryptoasn1.SEQUENCE) {
		tb.Fatal("not a timestamp")
	}
	for !signed.Empty() {
		var part cryptobyte.String
		var tag cryptoasn1.Tag
		if !signed.ReadAnyASN1Element(&part, &tag) {
			tb.Fatal("not a timestamp")
		}
		parts = append(parts, part)
	}
	return status, kind, parts
}

// contentOf is an element without its header.
func contentOf(tb testing.TB, element cryptobyte.String) []byte {
	tb.Helper()
	var content cryptobyte.String
	var tag cryptoasn1.Tag
	if !element.ReadAnyASN1(&content, &tag) {
		tb.Fatal("not an element")
	}
	return content
}

// signedBy is the first timestamp with the certificates and the signers of all.
func signedBy(tb testing.TB, stamps ...[]byte) []byte {
	tb.Helper()
	status, kind, parts := signedParts(tb, stamps[0])
	var certificates, signers []byte
	for _, stamp := range stamps {
		_, _, own := signedParts(tb, stamp)
		signers = append(signers, contentOf(tb, own[len(own)-1])...)
		if certified := own[3]; len(own) == 5 && !bytes.Contains(certificates, contentOf(tb, certified)) {
			certificates = append(certificates, contentOf(tb, certified)...)
		}
	}
	var b cryptobyte.Builder
	b.AddASN1(cryptoasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddBytes(status)
		b.AddASN1(cryptoasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddBytes(kind)
			b.AddASN1(cryptoasn1.Tag(0).ContextSpecific().Constructed(), func(b *cryptobyte.Builder) {
				b.AddASN1(cryptoasn1.SEQUENCE, func(b *cryptobyte.Builder) {
					for _, part := range parts[:3] {
						b.AddBytes(part)
					}
					if certificates != nil {
						b.AddASN1(cryptoasn1.Tag(0).ContextSpecific().Constructed(), func(b *cryptobyte.Builder) { b.AddBytes(certificates) })
					}
					b.AddASN1(cryptoasn1.SET, func(b *cryptobyte.Builder) { b.AddBytes(signers) })
				})
			})
		})
	})
	return b.BytesOrPanic()
}

// TestOneSigner: a timestamp has exactly one signer, the authority (RFC 3161,
// section 2.4.2), with its certificate or without.
func TestOneSigner(t *testing.T) {
	t.Parallel()
	trusted, other := newClock(t), newClock(t)
	bare, certified, foreign := trusted.stamp(t, false), trusted.stamp(t, true), other.stamp(t, true)
	for name, c := range map[string]struct {
		stamp []byte
		ok    bool
	}{
		"the authority":                              {signedBy(t, certified), true},
		"the authority, without its certificate":     {signedBy(t, bare), true},
		"the authority twice":                        {signedBy(t, certified, certified), false},
		"the authority twice, without certificates":  {signedBy(t, bare, bare), false},
		"the authority and a stranger":               {signedBy(t, certified, foreign), false},
		"a stranger and the authority":               {signedBy(t, foreign, certified), false},
		"the authority, uncertified, and a stranger": {signedBy(t, bare, foreign), false},
		"a stranger":                                 {signedBy(t, foreign), false},
	} {
		s := &sigstore.Signature{Value: []byte("value"), Timestamps: [][]byte{c.stamp}}
		times, err := sigstore.VerifyTimestamps(s, trusted)
		if (err == nil) != c.ok || (len(times) == 1) != c.ok {
			t.Errorf("%s: %v, %v", name, times, err)
		}
	}
}
