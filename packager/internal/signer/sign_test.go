package signer_test

import (
	"context"
	"crypto"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/go-digest"
	"github.com/sigstore/cosign/v2/pkg/cosign"
	"github.com/sigstore/cosign/v2/pkg/oci/static"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/radome-io/fleeting-plugin-openstack/packager/internal/signer"
)

const (
	subject = digest.Digest("sha256:1111111111111111111111111111111111111111111111111111111111111111")
	other   = digest.Digest("sha256:2222222222222222222222222222222222222222222222222222222222222222")
	slsa    = "https://slsa.dev/provenance/v1"
)

// options are those of `cosign verify --key` of version 2: SHA-256 whatever
// the key.
func options(tb testing.TB, publicPEM []byte) *cosign.CheckOpts {
	tb.Helper()
	pub, err := cryptoutils.UnmarshalPEMToPublicKey(publicPEM)
	if err != nil {
		tb.Fatal(err)
	}
	v, err := signature.LoadVerifier(pub, crypto.SHA256)
	if err != nil {
		tb.Fatal(err)
	}
	return &cosign.CheckOpts{SigVerifier: v, IgnoreTlog: true, Offline: true, TrustedMaterial: &root.BaseTrustedMaterial{}}
}

func hashOf(tb testing.TB, d digest.Digest) v1.Hash {
	tb.Helper()
	h, err := v1.NewHash(d.String())
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

func checkSignature(tb testing.TB, l signer.Layer, d digest.Digest, co *cosign.CheckOpts) error {
	tb.Helper()
	sig, err := static.NewSignature(l.Payload, l.Annotations["dev.cosignproject.cosign/signature"])
	if err != nil {
		tb.Fatal(err)
	}
	co.ClaimVerifier = cosign.SimpleClaimVerifier
	_, err = cosign.VerifyImageSignature(tb.Context(), sig, hashOf(tb, d), co)
	return err
}

func checkAttestation(tb testing.TB, l signer.Layer, d digest.Digest, co *cosign.CheckOpts) error {
	tb.Helper()
	att, err := static.NewAttestation(l.Payload)
	if err != nil {
		tb.Fatal(err)
	}
	co.ClaimVerifier = cosign.IntotoSubjectClaimVerifier
	_, err = cosign.VerifyBlobAttestation(tb.Context(), att, hashOf(tb, d), co)
	return err
}

func checkBundle(tb testing.TB, raw []byte, d digest.Digest, co *cosign.CheckOpts) (*verify.VerificationResult, error) {
	tb.Helper()
	var b bundle.Bundle
	if err := b.UnmarshalJSON(raw); err != nil {
		tb.Fatal(err)
	}
	sum, err := hex.DecodeString(d.Encoded())
	if err != nil {
		tb.Fatal(err)
	}
	return cosign.VerifyNewBundle(tb.Context(), co, verify.WithArtifactDigest("sha256", sum), &b)
}

func TestCosignVerifiesOurs(t *testing.T) {
	t.Parallel()
	for name, key := range plainKeys(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := signer.FromKey(key, nil, signer.Services{})
			if err != nil {
				t.Fatal(err)
			}
			co := options(t, s.PublicKey())
			sig, err := s.SignImage(t.Context(), "registry.example/plugin", subject)
			if err != nil {
				t.Fatal(err)
			}
			att, err := s.Attest(t.Context(), []signer.Subject{{Name: "x", Digest: other}, {Digest: subject}}, slsa, []byte(`{"a":1}`))
			if err != nil {
				t.Fatal(err)
			}
			if err := checkSignature(t, sig.Legacy, subject, co); err != nil {
				t.Errorf("signature: %v", err)
			}
			if err := checkSignature(t, sig.Legacy, other, co); err == nil {
				t.Error("signature of another digest")
			}
			for _, d := range []digest.Digest{subject, other} {
				if err := checkAttestation(t, att.Legacy, d, co); err != nil {
					t.Errorf("attestation: %v", err)
				}
			}
			for want, signed := range map[string]signer.Signed{"https://sigstore.dev/cosign/sign/v1": sig, slsa: att} {
				result, err := checkBundle(t, signed.Bundle, subject, co)
				if err != nil {
					t.Errorf("bundle %s: %v", want, err)
					continue
				}
				if got := result.Statement.GetPredicateType(); got != want || signed.PredicateType != want {
					t.Errorf("predicate type %q, %q, not %q", got, signed.PredicateType, want)
				}
			}
			if _, err := checkBundle(t, sig.Bundle, other, co); err == nil {
				t.Error("bundle of another digest")
			}
		})
	}
}

func TestLayers(t *testing.T) {
	t.Parallel()
	s, err := signer.FromKey(plainKeys(t)["P-256"], nil, signer.Services{})
	if err != nil {
		t.Fatal(err)
	}
	sig, err := s.SignImage(t.Context(), "registry.example/plugin", subject)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"critical":{"identity":{"docker-reference":"registry.example/plugin"},"image":{"docker-manifest-digest":"` + subject.String() +
		`"},"type":"cosign container image signature"},"optional":null}`
	if string(sig.Legacy.Payload) != want {
		t.Errorf("got %s\nwant %s", sig.Legacy.Payload, want)
	}
	att, err := s.Attest(t.Context(), []signer.Subject{{Digest: subject}}, slsa, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	// cosign requires the signature annotation on attestations too, empty.
	if got, ok := att.Legacy.Annotations["dev.cosignproject.cosign/signature"]; got != "" || !ok || att.Legacy.Annotations["predicateType"] != slsa {
		t.Errorf("annotations %v", att.Legacy.Annotations)
	}
	for name, media := range map[string]string{sig.Legacy.MediaType: "simplesigning", att.Legacy.MediaType: "dsse"} {
		if !strings.Contains(name, media) {
			t.Errorf("media type %s", name)
		}
	}
}

func TestSignBlob(t *testing.T) {
	t.Parallel()
	s, err := signer.FromKey(plainKeys(t)["P-256"], nil, signer.Services{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.SignBlob(t.Context(), []byte("sums"))
	if err != nil {
		t.Fatal(err)
	}
	var b bundle.Bundle
	if err := b.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	for content, ok := range map[string]bool{"sums": true, "sumz": false} {
		_, err := cosign.VerifyNewBundle(t.Context(), options(t, s.PublicKey()), verify.WithArtifact(strings.NewReader(content)), &b)
		if ok != (err == nil) {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func TestInputs(t *testing.T) {
	t.Parallel()
	s, err := signer.FromKey(plainKeys(t)["P-256"], nil, signer.Services{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SignImage(t.Context(), "", "sha256:short"); !errors.Is(err, signer.ErrInput) {
		t.Errorf("digest: %v", err)
	}
	one := []signer.Subject{{Digest: subject}}
	for name, f := range map[string]func() (signer.Signed, error){
		"no subject":     func() (signer.Signed, error) { return s.Attest(t.Context(), nil, slsa, []byte("{}")) },
		"bad subject":    func() (signer.Signed, error) { return s.Attest(t.Context(), []signer.Subject{{}}, slsa, []byte("{}")) },
		"no type":        func() (signer.Signed, error) { return s.Attest(t.Context(), one, "", []byte("{}")) },
		"not JSON":       func() (signer.Signed, error) { return s.Attest(t.Context(), one, slsa, []byte("x")) },
		"not an object":  func() (signer.Signed, error) { return s.Attest(t.Context(), one, slsa, []byte("[]")) },
		"trailing data":  func() (signer.Signed, error) { return s.Attest(t.Context(), one, slsa, []byte("{}{}")) },
		"null":           func() (signer.Signed, error) { return s.Attest(t.Context(), one, slsa, []byte("null")) },
		"only a literal": func() (signer.Signed, error) { return s.Attest(t.Context(), one, slsa, json.RawMessage(`"x"`)) },
	} {
		if _, err := f(); !errors.Is(err, signer.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.SignImage(ctx, "", subject); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
