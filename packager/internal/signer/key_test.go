package signer_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"

	"github.com/sigstore/cosign/v2/pkg/cosign"

	"github.com/radome-io/fleeting-plugin-openstack/packager/internal/signer"
)

func TestGenerateKeyPair(t *testing.T) {
	t.Parallel()
	for _, password := range [][]byte{[]byte("secret"), nil} {
		private, public, err := signer.GenerateKeyPair(password)
		if err != nil {
			t.Fatal(err)
		}
		if !signer.Encrypted(private) {
			t.Error("not encrypted")
		}
		// cosign itself must be able to read it.
		if _, err := cosign.LoadPrivateKey(private, password, nil); err != nil {
			t.Errorf("cosign: %v", err)
		}
		s, err := signer.FromKey(private, password, signer.Services{})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(s.PublicKey(), public) {
			t.Errorf("public key %s, not %s", s.PublicKey(), public)
		}
		if _, err := signer.FromKey(private, []byte("other"), signer.Services{}); !errors.Is(err, signer.ErrPassword) {
			t.Errorf("other password: %v", err)
		}
	}
}

func TestReadsCosignsKeys(t *testing.T) {
	t.Parallel()
	keys, err := cosign.GenerateKeyPair(func(bool) ([]byte, error) { return []byte("pw"), nil })
	if err != nil {
		t.Fatal(err)
	}
	s, err := signer.FromKey(keys.PrivateBytes, []byte("pw"), signer.Services{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(s.PublicKey(), keys.PublicBytes) {
		t.Error("another public key")
	}
	block, _ := pem.Decode(keys.PrivateBytes)
	block.Type = "ENCRYPTED COSIGN PRIVATE KEY" // as cosign 1 wrote it
	if _, err := signer.FromKey(pem.EncodeToMemory(block), []byte("pw"), signer.Services{}); err != nil {
		t.Error(err)
	}
}

// plainKeys are private keys of every kind in every plain form.
func plainKeys(tb testing.TB) map[string][]byte {
	tb.Helper()
	enc := func(kind string, der []byte, err error) []byte {
		if err != nil {
			tb.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	pkcs8 := func(key any) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return enc("PRIVATE KEY", der, err)
	}
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(p256)
	return map[string][]byte{
		"P-256": pkcs8(p256), "P-384": pkcs8(p384), "RSA": pkcs8(rsaKey), "Ed25519": pkcs8(ed),
		"P-256 in SEC 1": enc("EC PRIVATE KEY", sec1, err),
		"RSA in PKCS #1": enc("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey), nil),
	}
}

func TestFromKeyRefuses(t *testing.T) {
	t.Parallel()
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	good := plainKeys(t)["P-256"]
	for name, key := range map[string][]byte{
		"nothing":       nil,
		"no PEM":        []byte("x"),
		"another block": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}),
		"rubbish":       pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}),
		"trailing data": append(bytes.Clone(good), "x"...),
		"a small RSA":   pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(small)}),
	} {
		if _, err := signer.FromKey(key, nil, signer.Services{}); !errors.Is(err, signer.ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := signer.FromKey(good, nil, signer.Services{RekorVersion: 3, RekorURL: "x"}); !errors.Is(err, signer.ErrOptions) {
		t.Errorf("Rekor 3: %v", err)
	}
	if _, err := signer.FromKey(good, nil, signer.Services{TrustedRoot: []byte("{}")}); !errors.Is(err, signer.ErrOptions) {
		t.Errorf("empty root: %v", err)
	}
}

// TestKeysOfOpenssl: parameters of a curve before the key are passed over, and a
// password of openssl's is named.
func TestKeysOfOpenssl(t *testing.T) {
	t.Parallel()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	parameters := pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}})
	if _, err := signer.FromKey(append(parameters, key...), nil, signer.Services{}); err != nil {
		t.Errorf("as openssl ecparam -genkey writes it: %v", err)
	}
	encrypted := pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: der})
	if _, err := signer.FromKey(encrypted, nil, signer.Services{}); !errors.Is(err, signer.ErrKey) || !bytes.Contains([]byte(err.Error()), []byte("decrypt it with openssl pkey")) {
		t.Errorf("with a password of openssl's: %v", err)
	}
}
