package sigstore_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"io"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/digitorus/timestamp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/sigstore"
)

// forger is an RSA key of any size that signs nothing, at no cost: only who
// verifies has work.
type forger struct{ public *rsa.PublicKey }

func newForger(bits uint, exponent int) forger {
	n := new(big.Int).Lsh(big.NewInt(1), bits)
	return forger{&rsa.PublicKey{N: n.Sub(n, big.NewInt(1)), E: exponent}}
}

// Public implements crypto.Signer.
func (f forger) Public() crypto.PublicKey { return f.public }

// Sign implements crypto.Signer.
func (f forger) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return make([]byte, f.public.Size()), nil
}

// stampBy is a timestamp over "value" with the certificate of any key.
func stampBy(tb testing.TB, signer crypto.Signer) []byte {
	tb.Helper()
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), authority)
	if err != nil {
		tb.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	sum := sha256.Sum256([]byte("value"))
	stamp, err := (&timestamp.Timestamp{
		HashAlgorithm: crypto.SHA256, HashedMessage: sum[:], Time: time.Now(), AddTSACertificate: true, Policy: asn1.ObjectIdentifier{1, 2, 3},
	}).CreateResponseWithOpts(certificate, signer, crypto.SHA256)
	if err != nil {
		tb.Fatal(err)
	}
	return stamp
}

// overlapping is BER of elements that reach out of those around them, so that a
// careless reader reads each of them twice for every level.
func overlapping(levels int) []byte {
	text := []byte{5, 0}
	for range levels {
		n := len(text)
		header := []byte{0x30, byte(n)}
		if n > 127 {
			header = []byte{0x30, 0x81, byte(n)}
		}
		text = append(append([]byte{0x30, byte(len(header))}, header...), text...)
	}
	return text
}

// inResponse puts a token into a response of a timestamp authority.
func inResponse(tb testing.TB, token []byte) []byte {
	tb.Helper()
	response, err := asn1.Marshal(struct {
		Status struct{ Code int }
		Token  asn1.RawValue
	}{Token: asn1.RawValue{Class: asn1.ClassUniversal, Tag: asn1.TagSequence, IsCompound: true, Bytes: token}})
	if err != nil {
		tb.Fatal(err)
	}
	return response
}

// TestExpensiveTimestamps: a timestamp that would take minutes or hours to verify
// is refused at once, before anything of it is verified.
func TestExpensiveTimestamps(t *testing.T) {
	t.Parallel()
	nested := []byte{5, 0}
	for len(nested) < 100 {
		nested = append([]byte{0x30, byte(len(nested))}, nested...)
	}
	for name, c := range map[string]struct {
		stamp []byte
		want  string
	}{
		"elements that overlap":   {inResponse(t, overlapping(40)), "DER"},
		"elements without an end": {inResponse(t, []byte{0x30, 0x80, 5, 0, 0, 0}), "DER"},
		"elements in each other":  {inResponse(t, nested), "in each other"},
		"a key of 16,384 bits":    {stampBy(t, newForger(1<<14, 65537)), "RSA key of 16384 bits"},
		"a large exponent":        {stampBy(t, newForger(2048, 1<<31-1)), "exponent 2147483647"},
		"a key of 200,000 bits":   {stampBy(t, newForger(200_000, 65537)), "bytes, more than"},
		"padding":                 {inResponse(t, append([]byte{4, 0x83, 1, 0, 0}, make([]byte, 1<<16)...)), "bytes, more than"},
	} {
		if err := sigstore.CheckTimestamp(c.stamp); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		s := &sigstore.Signature{Value: []byte("value"), Timestamps: [][]byte{c.stamp}}
		if _, err := sigstore.VerifyTimestamps(s, newRekor(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: verified without a look at it: %v", name, err)
		}
	}
	key, _ := newKey(t)
	if err := sigstore.CheckTimestamp(stampBy(t, key)); err != nil {
		t.Errorf("an ordinary timestamp: %v", err)
	}
}

// FuzzCheckTimestamp: whatever passes is read by the library, too, or refused.
func FuzzCheckTimestamp(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(stampBy(f, key))
	f.Add(inResponse(f, overlapping(5)))
	f.Fuzz(func(_ *testing.T, stamp []byte) {
		if sigstore.CheckTimestamp(stamp) == nil {
			_, _ = timestamp.ParseResponse(stamp)
		}
	})
}
