package trust

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore-go/pkg/testing/data"
)

// The bundle that npm serves beside sigstore 2.0.0: a real attestation by
// GitHub Actions, logged in the public log, with an SCT. sigstore-go has it as
// test data. Its subject has a sha512 digest, which Verify refuses for
// artifacts in registries, so the test goes in below that check.
const (
	publicDigest = digest.Digest("sha512:46d4e2f74c4877316640000a6fdf8a8b59f1e0847667973e9859f774dd31b8f1e0937813b777fb66a2ac67d50540fe34640966eee9fc2ccca387082b4c85cd3c")
	githubIssuer = "https://token.actions.githubusercontent.com"
	publicSigner = "https://github.com/sigstore/sigstore-js/.github/workflows/release.yml@refs/heads/main"
)

func publicEvidence(tb testing.TB, name string) Evidence {
	tb.Helper()
	t, ok := tb.(*testing.T)
	if !ok {
		tb.Fatal("not a test")
	}
	raw, err := json.Marshal(data.Bundle(t, name))
	if err != nil {
		tb.Fatal(err)
	}
	return Evidence{Format: FormatBundle, Payload: raw}
}

func TestPublicInstance(t *testing.T) {
	t.Parallel()
	ev := publicEvidence(t, "sigstore.js@2.0.0-provenance.sigstore.json")
	want := Identity{
		Issuer: githubIssuer, Subject: publicSigner,
		SourceRepository: "https://github.com/sigstore/sigstore-js", SourceRef: "refs/heads/main", BuildSigner: publicSigner,
	}
	r, err := RequireIdentity(want, IdentityOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.verifyClaim(t.Context(), publicDigest, ev)
	if err != nil {
		t.Fatal(err)
	}
	if v.Kind() != KindAttestation || v.PredicateType() != "https://slsa.dev/provenance/v1" {
		t.Errorf("%s %s", v.Kind(), v.PredicateType())
	}
	if got := v.Signer(); got.Issuer != githubIssuer || got.Subject != publicSigner || got.SourceRepository != want.SourceRepository || got.RunURL == "" {
		t.Errorf("signer %+v", got)
	}
	if _, logged := v.LogIndex(); !logged || v.Time().Before(time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("log index or time missing: %v", v.Time())
	}
	if _, err := r.Verify(t.Context(), publicDigest, ev); !errors.Is(err, ErrWrongSubject) {
		t.Errorf("sha512 through the front door: %v", err)
	}
}

func TestPublicInstanceRefuses(t *testing.T) {
	t.Parallel()
	ev := publicEvidence(t, "sigstore.js@2.0.0-provenance.sigstore.json")
	for name, c := range map[string]struct {
		identity Identity
		want     error
	}{
		"another issuer":     {Identity{Issuer: githubIssuer + "/x", Subject: publicSigner}, ErrWrongSigner},
		"another subject":    {Identity{Issuer: githubIssuer, Subject: publicSigner + "x"}, ErrWrongSigner},
		"part of a subject":  {Identity{Issuer: githubIssuer, SubjectPattern: `^https://github\.com/sigstore/sigstore-js/$`}, ErrWrongSigner},
		"alternatives":       {Identity{Issuer: githubIssuer, SubjectPattern: `^https://github\.com/sigstore/|x$`}, ErrWrongSigner},
		"another repository": {Identity{Issuer: githubIssuer, Subject: publicSigner, SourceRepository: "https://github.com/sigstore/sigstore-j"}, ErrWrongSigner},
		"another ref":        {Identity{Issuer: githubIssuer, Subject: publicSigner, SourceRef: "refs/heads/mai"}, ErrWrongSigner},
		"another builder":    {Identity{Issuer: githubIssuer, Subject: publicSigner, BuildSigner: "x"}, ErrWrongSigner},
		"another digest":     {Identity{Issuer: githubIssuer, Subject: publicSigner}, ErrWrongSubject},
	} {
		r, err := RequireIdentity(c.identity, IdentityOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d := publicDigest
		if errors.Is(c.want, ErrWrongSubject) {
			d = digest.SHA512.FromString("another")
		}
		if _, err := r.verifyClaim(t.Context(), d, ev); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// TestPublicInstanceTrust takes away one part of the trusted root after the
// other: each must be missed, with the reason that belongs to it.
func TestPublicInstanceTrust(t *testing.T) {
	t.Parallel()
	ev := publicEvidence(t, "sigstore.js@2.0.0-provenance.sigstore.json")
	id := Identity{Issuer: githubIssuer, Subject: publicSigner}
	for name, c := range map[string]struct {
		edit func(root map[string][]any)
		want error
	}{
		"no log":                   {func(r map[string][]any) { r["tlogs"] = nil }, ErrRequirement},
		"no authority":             {func(r map[string][]any) { r["certificateAuthorities"] = nil }, ErrRequirement},
		"no certificate log":       {func(r map[string][]any) { r["ctlogs"] = nil }, ErrRequirement},
		"another log":              {func(r map[string][]any) { r["tlogs"] = r["ctlogs"] }, ErrUntrustedTime},
		"another certificate log":  {func(r map[string][]any) { r["ctlogs"] = r["tlogs"] }, ErrUntrustedCertificate},
		"log ended before":         {func(r map[string][]any) { end(r["tlogs"]) }, ErrUntrustedTime},
		"certificate log ended":    {func(r map[string][]any) { end(r["ctlogs"]) }, ErrUntrustedCertificate},
		"only the first authority": {func(r map[string][]any) { r["certificateAuthorities"] = r["certificateAuthorities"][:1] }, ErrUntrustedCertificate},
	} {
		roots := editedRoot(t, c.edit)
		r, err := RequireIdentity(id, IdentityOptions{Roots: roots})
		if err == nil {
			_, err = r.verifyClaim(t.Context(), publicDigest, ev)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// editedRoot is the public instance's root after a change to its lists.
func editedRoot(tb testing.TB, edit func(map[string][]any)) *TrustedRoot {
	tb.Helper()
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(publicRoot, &doc); err != nil {
		tb.Fatal(err)
	}
	lists := map[string][]any{"tlogs": nil, "ctlogs": nil, "certificateAuthorities": nil}
	for name := range lists {
		var list []any
		if err := json.Unmarshal(doc[name], &list); err != nil {
			tb.Fatal(err)
		}
		lists[name] = list
	}
	edit(lists)
	for name, list := range lists {
		raw, err := json.Marshal(list)
		if err != nil {
			tb.Fatal(err)
		}
		doc[name] = raw
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		tb.Fatal(err)
	}
	roots, err := LoadTrustedRoot(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return roots
}

// end lets every key of a list of logs expire before anything was signed.
func end(logs []any) {
	for _, l := range logs {
		if log, ok := l.(map[string]any); ok {
			if key, ok := log["publicKey"].(map[string]any); ok {
				key["validFor"] = map[string]any{"start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z"}
			}
		}
	}
}

func TestBundleWithTwoSignatures(t *testing.T) {
	t.Parallel()
	one, err := parseClaim(publicEvidence(t, "dsse.sigstore.json"))
	if err != nil {
		t.Fatal(err)
	}
	signer := one.signature.Certificate.EmailAddresses[0] // a person: not repeated here
	r, err := RequireIdentity(Identity{Issuer: "https://github.com/login/oauth", Subject: signer}, IdentityOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const d = digest.Digest("sha512:bbfd372fc9beeb777fe35d05bb10c0c70a9733d366a75fed7dd18866c7391de3ee7e88ba74dd47abf3e15c845e547fcf0e5c3da80854c751554224d3a6d4e55f")
	if _, err := r.verifyClaim(t.Context(), d, publicEvidence(t, "dsse.sigstore.json")); err != nil {
		t.Errorf("one signature: %v", err)
	}
	if _, err := r.verifyClaim(t.Context(), d, publicEvidence(t, "dsse-2sigs.sigstore.json")); err == nil {
		t.Error("two signatures: accepted")
	}
	if _, err := r.verifyClaim(t.Context(), d, publicEvidence(t, "othername.sigstore.json")); !errors.Is(err, ErrUnsupportedFormat) {
		t.Errorf("a message signature: %v", err)
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	var nothing []int
	if err := guard(func() error { return errors.New([]string{}[len(nothing)]) }); !errors.Is(err, ErrMalformed) {
		t.Errorf("panic: %v", err)
	}
}
