package trust_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

const (
	subject = digest.Digest("sha256:1111111111111111111111111111111111111111111111111111111111111111")
	other   = digest.Digest("sha256:2222222222222222222222222222222222222222222222222222222222222222")
	slsa    = `{"buildDefinition":{"buildType":"x"},"n":1.0}`
)

func asEvidence(tb testing.TB, l trusttest.Layer) trust.Evidence {
	tb.Helper()
	f, ok := trust.FormatOf(l.MediaType)
	if !ok {
		tb.Fatalf("no evidence in %s", l.MediaType)
	}
	return trust.Evidence{Format: f, Payload: l.Payload, Annotations: l.Annotations, Origin: "test"}
}

func requireKey(tb testing.TB, k *trusttest.Key) trust.Requirement {
	tb.Helper()
	r, err := trust.RequireKey(k.PublicPEM(tb), trust.KeyOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func TestKeyAccepts(t *testing.T) {
	t.Parallel()
	k := trusttest.NewKey(t)
	for name, c := range map[string]struct {
		layer     trusttest.Layer
		kind      trust.Kind
		predicate string
	}{
		"simple signing": {k.Sign(t, subject), trust.KindSignature, ""},
		"bundle":         {k.SignBundle(t, subject), trust.KindSignature, trusttest.PredicateSignature},
		"DSSE":           {k.Attest(t, subject, trusttest.PredicateSLSA, slsa), trust.KindAttestation, trusttest.PredicateSLSA},
		// A DSSE layer never is a signature.
		"DSSE, type of a signature": {k.Attest(t, subject, trusttest.PredicateSignature, slsa), trust.KindAttestation, trusttest.PredicateSignature},
		"attesting bundle":          {k.AttestBundle(t, subject, trusttest.PredicateSLSA, slsa), trust.KindAttestation, trusttest.PredicateSLSA},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := requireKey(t, k).Verify(t.Context(), subject, asEvidence(t, c.layer))
			if err != nil {
				t.Fatal(err)
			}
			if v.Subject() != subject || v.Kind() != c.kind || v.PredicateType() != c.predicate {
				t.Errorf("got %s %s of %s", v.Kind(), v.PredicateType(), v.Subject())
			}
			if diff := cmp.Diff(trust.Signer{KeyID: k.ID(t)}, v.Signer()); diff != "" {
				t.Error(diff)
			}
			want := ""
			if c.predicate == trusttest.PredicateSLSA {
				want = slsa
			}
			if string(v.Predicate()) != want {
				t.Errorf("predicate %q, want %q", v.Predicate(), want)
			}
			if _, logged := v.LogIndex(); logged || !v.Time().IsZero() {
				t.Error("a log entry or a time out of nothing")
			}
		})
	}
}

// edit replaces part of a layer's payload, which must be there.
func edit(tb testing.TB, l trusttest.Layer, from, to string) trusttest.Layer {
	tb.Helper()
	s := string(l.Payload)
	if !strings.Contains(s, from) {
		tb.Fatalf("no %q in %s", from, s)
	}
	l.Payload = []byte(strings.Replace(s, from, to, 1))
	return l
}

// editEnvelope changes the statement inside a DSSE layer and leaves the signature.
func editEnvelope(tb testing.TB, l trusttest.Layer, from, to string) trusttest.Layer {
	tb.Helper()
	var doc map[string]any
	if err := json.Unmarshal(l.Payload, &doc); err != nil {
		tb.Fatal(err)
	}
	env := doc
	if inner, ok := doc["dsseEnvelope"].(map[string]any); ok {
		env = inner
	}
	text, ok := env["payload"].(string)
	raw, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || !strings.Contains(string(raw), from) {
		tb.Fatalf("no %q in %s (%v)", from, raw, err)
	}
	env["payload"] = base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(raw), from, to, 1)))
	if l.Payload, err = json.Marshal(doc); err != nil {
		tb.Fatal(err)
	}
	return l
}

func without(l trusttest.Layer, annotation string) trusttest.Layer {
	l.Annotations = map[string]string{annotation + "-not": ""}
	return l
}

func with(l trusttest.Layer, annotation, value string) trusttest.Layer {
	m := map[string]string{annotation: value}
	for k, v := range l.Annotations {
		if k != annotation {
			m[k] = v
		}
	}
	l.Annotations = m
	return l
}

func TestKeyRefuses(t *testing.T) {
	t.Parallel()
	k, stranger := trusttest.NewKey(t), trusttest.NewKey(t)
	sig, bundle := k.Sign(t, subject), k.SignBundle(t, subject)
	att, attBundle := k.Attest(t, subject, trusttest.PredicateSLSA, slsa), k.AttestBundle(t, subject, trusttest.PredicateSLSA, slsa)
	hex1, hex2 := subject.Encoded(), other.Encoded()
	for name, c := range map[string]struct {
		layer trusttest.Layer
		want  error
	}{
		"other key, simple signing":      {stranger.Sign(t, subject), trust.ErrBadSignature},
		"other key, DSSE":                {stranger.Attest(t, subject, trusttest.PredicateSLSA, slsa), trust.ErrBadSignature},
		"other key, bundle":              {stranger.SignBundle(t, subject), trust.ErrWrongSigner},
		"other key under our key's name": {edit(t, stranger.SignBundle(t, subject), hint(t, stranger), hint(t, k)), trust.ErrBadSignature},
		"other digest, simple signing":   {k.Sign(t, other), trust.ErrWrongSubject},
		"other digest, DSSE":             {k.Attest(t, other, trusttest.PredicateSLSA, slsa), trust.ErrWrongSubject},
		"other digest, bundle":           {k.SignBundle(t, other), trust.ErrWrongSubject},
		"altered to our digest, simple":  {edit(t, k.Sign(t, other), hex2, hex1), trust.ErrBadSignature},
		"altered to our digest, DSSE":    {editEnvelope(t, k.Attest(t, other, "t", "{}"), hex2, hex1), trust.ErrBadSignature},
		"altered to our digest, bundle":  {editEnvelope(t, k.SignBundle(t, other), hex2, hex1), trust.ErrBadSignature},
		"altered predicate, DSSE":        {editEnvelope(t, att, `"n":1.0`, `"n":2.0`), trust.ErrBadSignature},
		"altered predicate, bundle":      {editEnvelope(t, attBundle, `"n":1.0`, `"n":2.0`), trust.ErrBadSignature},
		"altered type into a signature":  {editEnvelope(t, attBundle, trusttest.PredicateSLSA, trusttest.PredicateSignature), trust.ErrBadSignature},
		"trailing space, simple signing": {edit(t, sig, `null}`, `null} `), trust.ErrBadSignature},
		"trailing data, simple signing":  {edit(t, sig, `null}`, `null}{}`), trust.ErrMalformed},
		"trailing data, DSSE":            {trailing(att), trust.ErrMalformed},
		"trailing data, bundle":          {trailing(bundle), trust.ErrMalformed},
		"no signature annotation":        {without(sig, "dev.cosignproject.cosign/signature"), trust.ErrMalformed},
		"signature not base64":           {with(sig, "dev.cosignproject.cosign/signature", "!"), trust.ErrMalformed},
		"certificate of rubbish":         {with(sig, "dev.sigstore.cosign/certificate", "rubbish"), trust.ErrMalformed},
		"log entry with a number":        {with(sig, "dev.sigstore.cosign/bundle", `{"Payload":{"body":1}}`), trust.ErrMalformed},
		"timestamp of nothing":           {with(sig, "dev.sigstore.cosign/rfc3161timestamp", `{}`), trust.ErrMalformed},
		"empty payload":                  {trusttest.Layer{MediaType: trusttest.MediaTypeBundle}, trust.ErrMalformed},
		"an empty object":                {trusttest.Layer{MediaType: trusttest.MediaTypeBundle, Payload: []byte("{}")}, trust.ErrUnsupportedFormat},
		"payload of another type":        {k.SignPayload(t, []byte(`{"critical":{"image":{"docker-manifest-digest":"`+subject.String()+`"},"type":"atomic container signature"}}`)), trust.ErrUnsupportedFormat},
		"envelope of another type":       {k.BundleOf(t, "text/plain", trusttest.Statement(subject, trusttest.PredicateSignature, "{}")), trust.ErrUnsupportedFormat},
		"statement of another type":      {k.BundleOf(t, "application/vnd.in-toto+json", []byte(`{"_type":"x","predicateType":"y"}`)), trust.ErrUnsupportedFormat},
		"statement about nothing":        {k.BundleOf(t, "application/vnd.in-toto+json", []byte(`{"_type":"https://in-toto.io/Statement/v1","predicateType":"y"}`)), trust.ErrWrongSubject},
		"bundle of a future version":     {edit(t, bundle, "v0.3", "v0.9"), trust.ErrUnsupportedFormat},
		"no signatures":                  {edit(t, bundle, `"signatures":[`, `"signatures":[],"x":[`), trust.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := requireKey(t, k).Verify(t.Context(), subject, asEvidence(t, c.layer))
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			var e *trust.Error
			if !errors.As(err, &e) || e.Origin != "test" || v.Kind() != 0 {
				t.Errorf("got %#v and a value of kind %v", err, v.Kind())
			}
		})
	}
}

func hint(tb testing.TB, k *trusttest.Key) string {
	tb.Helper()
	var doc struct {
		VerificationMaterial struct{ PublicKey struct{ Hint string } }
	}
	if err := json.Unmarshal(k.SignBundle(tb, subject).Payload, &doc); err != nil {
		tb.Fatal(err)
	}
	return doc.VerificationMaterial.PublicKey.Hint
}

func trailing(l trusttest.Layer) trusttest.Layer {
	l.Payload = append(append([]byte(nil), l.Payload...), "{}"...)
	return l
}

func TestKeyNeedsProofs(t *testing.T) {
	t.Parallel()
	k := trusttest.NewKey(t)
	roots, err := trust.PublicTrustedRoot()
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string]trust.KeyOptions{
		"log":       {Roots: roots, RequireLog: true},
		"timestamp": {Roots: roots, RequireTimestamp: true},
	} {
		r, err := trust.RequireKey(k.PublicPEM(t), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []trusttest.Layer{k.Sign(t, subject), k.SignBundle(t, subject), k.Attest(t, subject, "t", "{}")} {
			if _, err := r.Verify(t.Context(), subject, asEvidence(t, l)); !errors.Is(err, trust.ErrUntrustedTime) {
				t.Errorf("%s, %s: %v", name, l.MediaType, err)
			}
		}
	}
}

func TestVerifyRefusesNonsense(t *testing.T) {
	t.Parallel()
	k := trusttest.NewKey(t)
	ev := asEvidence(t, k.Sign(t, subject))
	if _, err := (trust.Requirement{}).Verify(t.Context(), subject, ev); !errors.Is(err, trust.ErrRequirement) {
		t.Errorf("zero requirement: %v", err)
	}
	for _, d := range []digest.Digest{"", "sha256:x", digest.Digest("sha512:" + strings.Repeat("1", 128))} {
		if _, err := requireKey(t, k).Verify(t.Context(), d, ev); !errors.Is(err, trust.ErrWrongSubject) {
			t.Errorf("digest %q: %v", d, err)
		}
	}
	if _, err := requireKey(t, k).Verify(t.Context(), subject, trust.Evidence{Payload: []byte("x")}); !errors.Is(err, trust.ErrUnsupportedFormat) {
		t.Errorf("no format: %v", err)
	}
	ev.Annotations = map[string]string{"x": strings.Repeat("x", 1<<20)}
	if _, err := requireKey(t, k).Verify(t.Context(), subject, ev); !errors.Is(err, trust.ErrMalformed) {
		t.Errorf("huge annotation: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := requireKey(t, k).Verify(ctx, subject, ev); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
