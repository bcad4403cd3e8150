package trust_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// requirements are the policies of the matrix, by name.
func requirements(tb testing.TB, lab *trusttest.LabSamples) map[string]trust.Requirement {
	tb.Helper()
	roots, err := trust.LoadTrustedRoot(lab.TrustedRoot())
	if err != nil {
		tb.Fatal(err)
	}
	public, err := trust.PublicTrustedRoot()
	if err != nil {
		tb.Fatal(err)
	}
	noLogs, err := trust.LoadTrustedRoot(lab.TrustedRootWithoutLogs())
	if err != nil {
		tb.Fatal(err)
	}
	key := func(other bool, o trust.KeyOptions) trust.Requirement {
		r, err := trust.RequireKey(lab.PublicKey(other), o)
		if err != nil {
			tb.Fatal(err)
		}
		return r
	}
	who := trust.Identity{Issuer: trusttest.LabIssuer, Subject: trusttest.LabSubject}
	identity := func(id trust.Identity, o trust.IdentityOptions) trust.Requirement {
		o.UnsafeNoSCT = true // the lab has no certificate log
		r, err := trust.RequireIdentity(id, o)
		if err != nil {
			tb.Fatal(err)
		}
		return r
	}
	pattern := trust.Identity{Issuer: trusttest.LabIssuer, SubjectPattern: `^https://github\.com/lab-org/lab-plugin/\.github/workflows/release\.yml@refs/tags/v.+$`}
	return map[string]trust.Requirement{
		"key":          key(false, trust.KeyOptions{}),
		"key, root":    key(false, trust.KeyOptions{Roots: roots}),
		"key, log":     key(false, trust.KeyOptions{Roots: roots, RequireLog: true}),
		"key, stamp":   key(false, trust.KeyOptions{Roots: roots, RequireTimestamp: true}),
		"key, public":  key(false, trust.KeyOptions{Roots: public, RequireLog: true}),
		"key, its tsa": key(false, trust.KeyOptions{Roots: public, RequireTimestamp: true}),
		"other key":    key(true, trust.KeyOptions{}),
		"id":           identity(who, trust.IdentityOptions{Roots: roots}),
		"id, pattern":  identity(pattern, trust.IdentityOptions{Roots: roots}),
		"id, stamp":    identity(who, trust.IdentityOptions{Roots: roots, TimestampSuffices: true}),
		"id, stamp, -": identity(who, trust.IdentityOptions{Roots: noLogs, TimestampSuffices: true}),
		"id, no log 2": identity(who, trust.IdentityOptions{Roots: withoutRekor2(tb, lab)}),
	}
}

// judge asks whether what the lab has about a digest is enough.
func judge(tb testing.TB, lab *trusttest.LabSamples, asked admission.Requirements, about digest.Digest) (trust.Verified, error) {
	tb.Helper()
	chain := chainOf(tb, about, func(d digest.Digest) []byte { return lab.Content(tb, d) })
	return evaluate(tb, asked, chain, about, found(tb, lab, about))
}

func signature(tb testing.TB, lab *trusttest.LabSamples, r trust.Requirement, about digest.Digest) (trust.Verified, error) {
	tb.Helper()
	return judge(tb, lab, signedBy(r), about)
}

func found(tb testing.TB, lab *trusttest.LabSamples, about digest.Digest) []trust.Evidence {
	tb.Helper()
	var all []trust.Evidence
	for _, l := range lab.Evidence(tb, about) {
		all = append(all, asEvidence(tb, l))
	}
	return all
}

// accepted lists, for each requirement, what it accepts of each sample:
// exactly what cosign accepts, save where cosign is wrong. All other pairs of
// a requirement and a sample are refused; see TestLabRefuses for the reasons.
var accepted = map[string][]string{
	"key": {
		"key-legacy", "key-legacy-recursive", "key-legacy-oci11", "key-legacy-rekor1", "key-bundle", "key-bundle-referrers", "key-bundle-rekor1",
		"key-bundle-v2cli", "key-full-bundle", "ours-key", "ours-key-rekor1", "ours-key-rekor2-tsa", "ours-key-tsa",
	},
	"key, log":   {"key-legacy-rekor1", "key-bundle-rekor1", "ours-key-rekor1", "ours-key-rekor2-tsa"},
	"key, stamp": {"ours-key-rekor2-tsa", "ours-key-tsa"},
	"other key":  {"neg-other-key-legacy", "neg-other-key-bundle"},
	"id": {
		"keyless-legacy-rekor1", "keyless-legacy-rekor1-tsa", "keyless-bundle-rekor1", "keyless-bundle-rekor1-tsa", "keyless-bundle-rekor2",
		"keyless-bundle-referrers", "keyless-bundle-moments",
		"ours-keyless-rekor1", "ours-keyless-rekor1-tsa", "ours-keyless-rekor2-tsa", "ours-keyless-two-refs",
	},
	"id, stamp": {"keyless-legacy-tsa", "keyless-bundle-tsa", "ours-keyless-tsa"}, // and all of "id"
	"id, stamp, -": {
		"keyless-legacy-tsa", "keyless-bundle-tsa", "keyless-legacy-rekor1-tsa", "keyless-bundle-rekor1-tsa", "keyless-bundle-rekor2",
		"keyless-bundle-referrers", "ours-keyless-tsa", "ours-keyless-rekor1-tsa", "ours-keyless-rekor2-tsa",
	},
}

// TestLabMatrix asks every requirement about every sample.
func TestLabMatrix(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	want := maps.Clone(accepted)
	want["key, root"] = accepted["key"]
	want["id, pattern"] = accepted["id"]
	want["id, no log 2"] = slices.DeleteFunc(slices.Clone(accepted["id"]), func(name string) bool {
		return strings.Contains(name, "rekor2") || name == "keyless-bundle-referrers"
	})
	want["id, stamp"] = slices.Concat(accepted["id"], accepted["id, stamp"])
	for name, r := range requirements(t, lab) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, s := range lab.Samples() {
				v, err := signature(t, lab, r, s.Index)
				if ok := slices.Contains(want[name], s.Name); ok != (err == nil) {
					t.Errorf("%s: accepted %v, want %v: %v", s.Name, err == nil, ok, err)
				}
				if err == nil && (v.Subject() != s.Index || v.Kind() != trust.KindSignature) {
					t.Errorf("%s: %s of %s", s.Name, v.Kind(), v.Subject())
				}
			}
		})
	}
}

// TestLabRefuses has the reason for each negative case.
func TestLabRefuses(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	all := requirements(t, lab)
	for _, c := range []struct {
		sample, requirement string
		want                error
	}{
		{"neg-unsigned", "key", admission.ErrUnsigned},
		{"neg-unsigned", "id", admission.ErrUnsigned},
		{"neg-other-key-legacy", "key", trust.ErrBadSignature},
		{"neg-other-key-bundle", "key", trust.ErrWrongSigner},
		{"neg-other-identity-legacy", "id", trust.ErrWrongSigner},
		{"neg-other-identity-bundle", "id", trust.ErrWrongSigner},
		{"neg-other-workflow-bundle", "id", trust.ErrWrongSigner},
		{"neg-other-workflow-bundle", "id, pattern", trust.ErrWrongSigner},
		{"neg-other-issuer-legacy", "id", trust.ErrWrongSigner},
		{"neg-other-issuer-bundle", "id", trust.ErrWrongSigner},
		{"neg-copied-legacy", "key", trust.ErrWrongSubject},
		{"neg-copied-bundle", "key", trust.ErrWrongSubject},
		{"neg-copied-keyless-legacy", "id", trust.ErrWrongSubject},
		{"neg-copied-keyless-bundle", "id", trust.ErrWrongSubject},
		{"neg-tampered-legacy", "key", trust.ErrBadSignature},
		{"neg-tampered-bundle", "key", trust.ErrBadSignature},
		{"neg-tampered-keyless-legacy", "id", trust.ErrBadSignature},
		{"neg-tampered-keyless-bundle", "id", trust.ErrBadSignature},
		{"neg-empty-sig", "key", admission.ErrUnsigned},
		{"neg-garbage-sig", "key", trust.ErrMalformed},
		{"neg-expired-legacy", "id", trust.ErrUntrustedTime},
		{"neg-expired-legacy", "id, stamp", trust.ErrUntrustedTime},
		{"neg-expired-bundle", "id", trust.ErrUntrustedTime},
		{"neg-expired-bundle", "id, stamp", trust.ErrUntrustedTime},
		// cosign 2 accepts this one: no log asked for, timestamps allowed, and
		// none there.
		{"neg-nolog-legacy", "id, stamp", trust.ErrUntrustedTime},
		{"neg-nolog-legacy", "id", trust.ErrUntrustedTime},
		{"neg-nolog-bundle", "id, stamp", trust.ErrUntrustedTime},
		{"neg-nolog-bundle", "id", trust.ErrUntrustedTime},
		{"neg-untrusted-ca-legacy", "id", trust.ErrUntrustedCertificate},
		{"neg-untrusted-ca-bundle", "id", trust.ErrUntrustedCertificate},
		// cosign accepts an attestation of any type as a signature.
		{"neg-att-wrong-type-legacy", "key", admission.ErrRefused},
		{"neg-att-wrong-type-bundle", "key", admission.ErrRefused},
		{"neg-att-copied-legacy", "key", trust.ErrWrongSubject},
		{"neg-att-copied-bundle", "key", trust.ErrWrongSubject},
		{"neg-platform-only-legacy", "key", admission.ErrUnsigned},
		{"neg-platform-only-bundle", "key", admission.ErrUnsigned},
		// A key where a certificate is required, and the reverse.
		{"key-legacy", "id", trust.ErrWrongSigner},
		{"key-bundle", "id", trust.ErrWrongSigner},
		{"keyless-legacy-rekor1", "key", trust.ErrBadSignature},
		{"keyless-bundle-rekor1", "key", trust.ErrWrongSigner},
		// A proof that is not there, or by a log that is not known.
		{"key-legacy", "key, log", trust.ErrUntrustedTime},
		{"key-bundle", "key, log", trust.ErrUntrustedTime},
		{"key-legacy-rekor1", "key, public", trust.ErrUntrustedTime},
		{"key-bundle-rekor1", "key, public", trust.ErrUntrustedTime},
		{"key-legacy-rekor1", "key, public", trust.ErrUnknownLog},
		{"key-bundle-rekor1", "key, public", trust.ErrUnknownLog},
		{"keyless-legacy-rekor1", "id, stamp, -", trust.ErrUnknownLog},
		{"keyless-bundle-rekor2", "id, no log 2", trust.ErrUnknownLog},
		{"ours-key-tsa", "key, its tsa", trust.ErrUntrustedTime},
		{"keyless-legacy-tsa", "id", trust.ErrUntrustedTime},
		{"keyless-bundle-tsa", "id", trust.ErrUntrustedTime},
		{"keyless-legacy-rekor1", "id, stamp, -", trust.ErrUntrustedTime},
		{"keyless-bundle-rekor1", "id, stamp, -", trust.ErrUntrustedTime},
	} {
		_, err := signature(t, lab, all[c.requirement], lab.Sample(t, c.sample).Index)
		if !errors.Is(err, c.want) {
			t.Errorf("%s under %q: got %v, want %v", c.sample, c.requirement, err, c.want)
		}
	}
}

// TestLabPlatforms: a signature covers the digest that was signed, no other.
func TestLabPlatforms(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	r := requirements(t, lab)["key"]
	for name, signed := range map[string]bool{
		"key-legacy": false, "key-bundle": false, "key-legacy-recursive": true,
		"neg-platform-only-legacy": true, "neg-platform-only-bundle": true,
	} {
		_, err := signature(t, lab, r, lab.Sample(t, name).Platform)
		if signed != (err == nil) || (err != nil && !errors.Is(err, admission.ErrUnsigned)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLabAttestations(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	all := requirements(t, lab)
	three := []string{trusttest.PredicateSLSA, trusttest.PredicateSPDX, trusttest.PredicateCycloneDX}
	two := three[:2]
	for _, c := range []struct {
		sample, requirement string
		types               []string
	}{
		{"key-att-legacy", "key", three},
		{"key-att-bundle", "key", three},
		{"key-att-bundle-referrers", "key", three},
		{"key-att-bundle-v2cli", "key", three[:1]},
		{"key-full-bundle", "key", three[:1]},
		{"keyless-att-legacy-rekor1", "id", three[:1]},
		{"keyless-att-bundle-rekor1", "id", three[:1]},
		{"keyless-att-bundle-rekor1-tsa", "id", three[:1]},
		{"keyless-att-bundle-rekor2", "id", three[:1]},
		{"keyless-att-bundle-tsa", "id, stamp", three[:1]},
		{"keyless-att-bundle-github", "id", three[:1]},
		{"keyless-att-bundle-github", "key", nil},
		{"keyless-bundle-referrers", "id", three[:1]},
		{"ours-key", "key", two},
		{"ours-key-rekor1", "key, log", two},
		{"ours-key-tsa", "key, stamp", two},
		{"ours-key-rekor2-tsa", "key, log", two},
		{"ours-keyless-rekor1", "id", two},
		{"ours-keyless-rekor1-tsa", "id", two},
		{"ours-keyless-rekor2-tsa", "id", two},
		{"ours-keyless-tsa", "id, stamp", two},
		{"neg-att-copied-legacy", "key", nil},
		{"neg-att-copied-bundle", "key", nil},
		{"neg-att-wrong-type-legacy", "key", nil},
		{"neg-att-wrong-type-bundle", "key", nil},
		{"keyless-att-bundle-tsa", "id", nil},
		{"key-att-legacy", "other key", nil},
		{"key-att-bundle", "id", nil},
	} {
		about := lab.Sample(t, c.sample).Index
		for _, kind := range three {
			v, err := judge(t, lab, attestedBy(all[c.requirement], kind), about)
			if slices.Contains(c.types, kind) != (err == nil) {
				t.Errorf("%s under %q, %s: %v", c.sample, c.requirement, kind, err)
			}
			if err == nil && (v.PredicateType() != kind || kind == trusttest.PredicateSLSA != strings.HasPrefix(string(v.Predicate()), "{")) {
				t.Errorf("%s: %s %.40s", c.sample, v.PredicateType(), v.Predicate())
			}
		}
	}
}

// TestLabSigner: who signed, when, and where it is logged.
func TestLabSigner(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	all := requirements(t, lab)
	for _, c := range []struct {
		sample, requirement string
		timed, logged       bool
	}{
		{"key-legacy", "key, root", false, false},
		{"key-bundle", "key, root", false, false},
		{"key-legacy-rekor1", "key", false, false},
		{"key-legacy-rekor1", "key, root", true, true},
		{"key-legacy-rekor1", "key, log", true, true},
		{"key-bundle-rekor1", "key, root", true, true},
		{"key-bundle-rekor1", "key, log", true, true},
		{"ours-key-tsa", "key, root", true, false},
		{"keyless-legacy-rekor1", "id", true, true},
		{"keyless-legacy-tsa", "id, stamp", true, false},
		{"keyless-bundle-rekor1", "id", true, true},
		{"keyless-bundle-rekor2", "id", true, true},
		{"keyless-bundle-tsa", "id, stamp", true, false},
	} {
		v, err := signature(t, lab, all[c.requirement], lab.Sample(t, c.sample).Index)
		if err != nil {
			t.Errorf("%s: %v", c.sample, err)
			continue
		}
		index, logged := v.LogIndex()
		if logged != c.logged || v.Time().IsZero() == c.timed || index < 0 {
			t.Errorf("%s under %q: index %d, logged %v, time %v", c.sample, c.requirement, index, logged, v.Time())
		}
		s := v.Signer()
		if strings.HasPrefix(c.requirement, "key") {
			if len(s.KeyID) != 64 || s.Issuer != "" {
				t.Errorf("%s: signer %+v", c.sample, s)
			}
			continue
		}
		want := trust.Signer{
			Issuer: trusttest.LabIssuer, Subject: trusttest.LabSubject, BuildSigner: trusttest.LabSubject,
			SourceRepository: "https://github.com/lab-org/lab-plugin", SourceRef: "refs/tags/v1.2.3",
			SourceDigest: s.SourceDigest, RunURL: s.RunURL,
		}
		if s != want || s.SourceDigest == "" || s.RunURL == "" {
			t.Errorf("%s: signer %+v", c.sample, s)
		}
	}
}

// TestLabWithoutSCT: the lab's certificates are in no certificate log, so
// unless that is said to be all right they are refused.
func TestLabWithoutSCT(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	// The lab's root with somebody's certificate log, so that there is one.
	public := string(trust.PublicTrustedRootJSON())
	_, after, ok := strings.Cut(public, `"ctlogs"`)
	if !ok {
		t.Fatal("no certificate logs in the public root")
	}
	logs, _, ok := strings.Cut(after, `"timestampAuthorities"`)
	if !ok {
		t.Fatal("no end of the certificate logs")
	}
	roots, err := trust.LoadTrustedRoot([]byte(strings.Replace(string(lab.TrustedRoot()), "{", fmt.Sprintf(`{"ctlogs"%s`, logs), 1)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := trust.RequireIdentity(trust.Identity{Issuer: trusttest.LabIssuer, Subject: trusttest.LabSubject}, trust.IdentityOptions{Roots: roots})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"keyless-legacy-rekor1", "keyless-bundle-rekor1", "keyless-bundle-rekor2"} {
		if _, err := signature(t, lab, r, lab.Sample(t, name).Index); !errors.Is(err, trust.ErrUntrustedCertificate) || !errors.Is(err, trust.ErrNoSCT) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
