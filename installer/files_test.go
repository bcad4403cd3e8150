package installer_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// labFile is a sample of the lab taken for a file: the bytes of its index, and
// the bundles that hang off it.
func labFile(tb testing.TB, lab *trusttest.LabSamples, name string) (content []byte, bundles []installer.Bundle) {
	tb.Helper()
	index := lab.Sample(tb, name).Index
	var lines []byte
	for _, layer := range lab.Evidence(tb, index) {
		if layer.MediaType == trusttest.MediaTypeBundle {
			lines = append(append(lines, layer.Payload...), '\n')
		}
	}
	if lines != nil {
		var err error
		if bundles, err = installer.ReadBundles(bytes.NewReader(lines), name); err != nil {
			tb.Fatal(err)
		}
	}
	return lab.Content(tb, index), bundles
}

// TestVerifyFileLab goes through everything that real cosign and our signer made
// against a real private sigstore: a file's verdict is that of attestations in
// place of signatures.
func TestVerifyFileLab(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	ref, accepted := reference(t, "registry.test/x"), 0
	for _, sample := range lab.Samples() {
		content, bundles := labFile(t, lab, sample.Name)
		for by, signer := range labSigners(t, lab) {
			i := newInstaller(t, policyOf(t, installer.Rule{Scope: "**", Signers: []installer.Signer{signer}}))
			v, err := i.VerifyFile(t.Context(), ref, bytes.NewReader(content), bundles...)
			want := len(bundles) > 0 && labVerdict(sample.Name, by, "attestation")
			if (err == nil) != want || err != nil && !errors.Is(err, installer.ErrRefused) {
				t.Errorf("%s by %s: %v; want accepted = %v", sample.Name, by, err, want)
			}
			if len(bundles) == 0 && !errors.Is(err, installer.Reason("not-attested")) {
				t.Errorf("%s by %s: %v; want not-attested", sample.Name, by, err)
			}
			if err == nil {
				accepted++
				if v.Digest != sample.Index || v.Size != int64(len(content)) || v.Verification.Covers != sample.Index || len(v.Verification.Evidence) != 1 {
					t.Errorf("%s by %s: %+v", sample.Name, by, v)
				}
			}
		}
	}
	if accepted < 8 {
		t.Errorf("only %d were accepted", accepted)
	}
}

// TestVerifyFileGitHub holds a file with an attestation as GitHub's own action
// makes it against rules.
func TestVerifyFileGitHub(t *testing.T) {
	t.Parallel()
	lab := trusttest.Lab(t)
	content, bundles := labFile(t, lab, "keyless-att-bundle-github")
	denied, err := version.ParseConstraint("1.2")
	if err != nil {
		t.Fatal(err)
	}
	other, err := version.ParseConstraint("1.3")
	if err != nil {
		t.Fatal(err)
	}
	const repository, builder = "https://github.com/lab-org/lab-plugin", trusttest.LabSubject
	provenance := func(a installer.Attestation) []installer.Attestation {
		a.PredicateType = "provenance"
		return []installer.Attestation{a}
	}
	for name, c := range map[string]struct {
		rule installer.Rule
		ok   bool
	}{
		"signer":              {installer.Rule{}, true},
		"all of it":           {installer.Rule{Attestations: provenance(installer.Attestation{Builder: builder, SourceRepository: repository, SourceRef: "refs/tags/v*"})}, true},
		"attestations alone":  {installer.Rule{AttestationsSuffice: true, Attestations: provenance(installer.Attestation{})}, true},
		"another repository":  {installer.Rule{Attestations: provenance(installer.Attestation{SourceRepository: repository + "2"})}, false},
		"another ref":         {installer.Rule{Attestations: provenance(installer.Attestation{SourceRef: "refs/heads/*"})}, false},
		"another builder":     {installer.Rule{Attestations: provenance(installer.Attestation{Builder: "https://github.com/actions/runner/github-hosted"})}, false},
		"bill of materials":   {installer.Rule{Attestations: []installer.Attestation{{PredicateType: "sbom"}}}, true},
		"another attestation": {installer.Rule{Attestations: []installer.Attestation{{PredicateType: "https://example.com/scan/v1"}}}, false},
		"two conditions": {installer.Rule{Attestations: append(
			provenance(installer.Attestation{SourceRepository: repository}), provenance(installer.Attestation{SourceRef: "refs/heads/*"})...)}, false},
		"old enough":       {installer.Rule{MinimumAge: time.Hour}, true},
		"too young":        {installer.Rule{MinimumAge: 200 * 365 * 24 * time.Hour}, false},
		"denied version":   {installer.Rule{DeniedVersions: []version.Constraint{denied}}, false},
		"other version":    {installer.Rule{DeniedVersions: []version.Constraint{other}}, true},
		"denied digest":    {installer.Rule{DeniedDigests: []digest.Digest{digest.FromBytes(content)}}, false},
		"other digest":     {installer.Rule{DeniedDigests: []digest.Digest{digest.FromString("x")}}, true},
		"verifies nothing": {installer.Rule{UnsafeUnsigned: true}, false},
	} {
		c.rule.Scope = "registry.test/**"
		if !c.rule.UnsafeUnsigned {
			c.rule.Signers = []installer.Signer{labSigners(t, lab)["identity"]}
		}
		i := newInstaller(t, policyOf(t, c.rule), installer.WithClock(func() time.Time { return time.Now().Add(24 * time.Hour) }))
		_, err := i.VerifyFile(t.Context(), reference(t, "registry.test/x"), bytes.NewReader(content), bundles...)
		if c.ok != (err == nil) || err != nil && !errors.Is(err, installer.ErrRefused) {
			t.Errorf("%s: %v; want accepted = %v", name, err, c.ok)
		}
		if _, err := i.VerifyFile(t.Context(), reference(t, "registry.example.com/x"), bytes.NewReader(content), bundles...); !errors.Is(err, installer.Reason("no-rule")) {
			t.Errorf("%s: without a rule: %v", name, err)
		}
		changed := append(slices.Clone(content), '\n')
		if _, err := i.VerifyFile(t.Context(), reference(t, "registry.test/x"), bytes.NewReader(changed), bundles...); !errors.Is(err, installer.ErrRefused) {
			t.Errorf("%s: a changed file: %v", name, err)
		}
	}
}

// TestVerifyFileRefuses holds that nothing that lacks something is accepted, and
// that what could not be read is no verdict.
func TestVerifyFileRefuses(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	d := digest.FromString("content")
	bundle := func(l trusttest.Layer) []installer.Bundle {
		t.Helper()
		bundles, err := installer.ReadBundles(bytes.NewReader(l.Payload), "bundle")
		if err != nil {
			t.Fatal(err)
		}
		return bundles
	}
	good := bundle(key.AttestBundle(t, d, trusttest.PredicateSLSA, `{"runDetails":{"builder":{"id":"b"}}}`))
	ref := reference(t, "registry.test/x")
	trusted := newInstaller(t, trusting(t, key))
	if v, err := trusted.VerifyFile(t.Context(), ref, strings.NewReader("content"), good...); err != nil || v.Digest != d || v.Size != 7 {
		t.Fatalf("%+v, %v", v, err)
	}
	for name, c := range map[string]struct {
		i       *installer.Installer
		as      installer.Reference
		bundles []installer.Bundle
		want    error
	}{
		"no bundle":           {trusted, ref, nil, installer.Reason("not-attested")},
		"zero bundle":         {trusted, ref, []installer.Bundle{{}}, installer.Reason("not-attested")},
		"zero reference":      {trusted, installer.Reference{}, good, installer.Reason("reference")},
		"zero policy":         {newInstaller(t, installer.Policy{}), ref, good, installer.Reason("no-rule")},
		"no verification":     {newInstaller(t, installer.UnsafeNoVerification()), ref, good, installer.ErrRefused},
		"another key":         {newInstaller(t, trusting(t, trusttest.NewKey(t))), ref, good, installer.ErrRefused},
		"a signature":         {trusted, ref, bundle(key.SignBundle(t, d)), installer.ErrRefused},
		"a bill of materials": {trusted, ref, bundle(key.AttestBundle(t, d, trusttest.PredicateSPDX, `{}`)), installer.ErrRefused},
		"unreadable":          {trusted, ref, bundle(key.AttestBundle(t, d, trusttest.PredicateSLSA, `{"runDetails":1}`)), installer.ErrRefused},
		"another file":        {trusted, ref, bundle(key.AttestBundle(t, digest.FromString("x"), trusttest.PredicateSLSA, `{}`)), installer.Reason("not-attested")},
		"another hash": {trusted, ref, bundle(key.BundleOf(t, "application/vnd.in-toto+json", bytes.ReplaceAll(
			trusttest.Statement(d, trusttest.PredicateSLSA, `{}`), []byte("sha256"), []byte("sha512")))), installer.Reason("not-attested")},
	} {
		if v, err := c.i.VerifyFile(t.Context(), c.as, strings.NewReader("content"), c.bundles...); !errors.Is(err, c.want) || v.Digest != "" {
			t.Errorf("%s: %+v, %v; want %v", name, v, err, c.want)
		}
	}
	bom := bundle(key.AttestBundle(t, d, trusttest.PredicateSPDX, `{}`))
	if _, err := trusted.VerifyFile(t.Context(), ref, strings.NewReader("content"), bom...); err == nil || !strings.Contains(err.Error(), "its predicate is "+trusttest.PredicateSPDX) {
		t.Errorf("a bill of materials: %v", err)
	}
	broken := errors.New("broken")
	if _, err := trusted.VerifyFile(t.Context(), ref, io.MultiReader(strings.NewReader("content"), iotest.ErrReader(broken)), good...); !errors.Is(err, broken) || errors.Is(err, installer.ErrRefused) {
		t.Errorf("unreadable file: %v", err)
	}
}

// TestReadBundles holds that a bundle that cannot be read spoils the file.
func TestReadBundles(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	d := digest.FromString("content")
	good := string(key.AttestBundle(t, d, trusttest.PredicateSLSA, `{}`).Payload)
	if bundles, err := installer.ReadBundles(strings.NewReader(good+good+"\n\n"+good), "three"); err != nil || len(bundles) != 3 {
		t.Errorf("three bundles: %d, %v", len(bundles), err)
	}
	for name, text := range map[string]string{
		"nothing":             "",
		"blanks":              " \n ",
		"no JSON":             "bundle",
		"null":                "null",
		"a list":              "[" + good + "]",
		"an empty object":     "{}",
		"cut off":             good[:len(good)-1],
		"trailing data":       good + "x",
		"one of two is wrong": good + `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json"}`,
		"an envelope":         string(key.Attest(t, d, trusttest.PredicateSLSA, `{}`).Payload),
		"another payload":     string(key.BundleOf(t, "text/plain", []byte("content")).Payload),
		"another version":     strings.Replace(good, "v0.3+json", "v9.9+json", 1),
		"too many":            strings.Repeat(good, 257),
		"a huge one":          `{"a":"` + strings.Repeat("x", 17<<20) + `"}`,
		"too long":            strings.Repeat(" ", 65<<20),
	} {
		if bundles, err := installer.ReadBundles(strings.NewReader(text), name); !errors.Is(err, installer.Reason("bundle")) || !errors.Is(err, installer.ErrRefused) || bundles != nil {
			t.Errorf("%s: %d bundles, %v", name, len(bundles), err)
		}
	}
	broken := errors.New("broken")
	if _, err := installer.ReadBundles(io.MultiReader(strings.NewReader(good), iotest.ErrReader(broken)), "broken"); !errors.Is(err, broken) || errors.Is(err, installer.ErrRefused) {
		t.Errorf("unreadable: %v", err)
	}
}
