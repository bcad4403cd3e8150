//go:build interop

package signer_test

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/interop/siglab"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
	"github.com/radome-io/fleeting-plugin-openstack/packager/internal/signer"
)

// live is one way of signing and what cosign must be told to verify it.
type live struct {
	name     string
	keyless  bool
	services signer.Services
	log      bool // the legacy form has a log entry
	stamp    bool // it has a timestamp, which must be used
}

func lives() []live {
	rekor1 := signer.Services{RekorURL: siglab.Rekor1}
	rekor2 := signer.Services{RekorURL: siglab.Rekor2, RekorVersion: 2}
	stamped := func(s signer.Services) signer.Services { s.TSAURL = siglab.TSA; return s }
	return []live{
		{name: "ours-key"},
		{name: "ours-key-rekor1", services: rekor1, log: true},
		{name: "ours-key-rekor2-tsa", services: stamped(rekor2), stamp: true},
		{name: "ours-key-tsa", services: stamped(signer.Services{}), stamp: true},
		{name: "ours-keyless-rekor1", keyless: true, services: rekor1, log: true},
		{name: "ours-keyless-rekor1-tsa", keyless: true, services: stamped(rekor1), log: true, stamp: true},
		{name: "ours-keyless-rekor2-tsa", keyless: true, services: stamped(rekor2), stamp: true},
		{name: "ours-keyless-tsa", keyless: true, services: stamped(signer.Services{}), stamp: true},
	}
}

// TestCosignVerifiesLive signs with every combination of key, certificate, log
// and timestamp, pushes to the lab's registry, and asks cosign 2 and 3.
func TestCosignVerifiesLive(t *testing.T) {
	t.Parallel()
	lab, err := siglab.Open(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range lives() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.signer(t, lab)
			at, tags := pushSigned(t, s, c.name)
			for _, args := range c.commands(lab, at, tags) {
				out, err := lab.Cosign(t.Context(), args.version, args.args...)
				if err != nil {
					t.Errorf("%v", err)
					continue
				}
				t.Logf("ok: cosign%d %s (%d bytes)", args.version, strings.Join(args.args[:2], " "), len(out))
			}
			for _, args := range c.wrong(lab, at, tags) {
				if out, err := lab.Cosign(t.Context(), args.version, args.args...); err == nil {
					t.Errorf("another signer passes: cosign%d %s\n%s", args.version, args.args, out)
				}
			}
			c.blob(t, lab, s)
		})
	}
	t.Run("ours-keyless-two-refs", func(t *testing.T) {
		t.Parallel()
		pushTwoRefs(t, lab)
	})
}

// pushTwoRefs pushes an index that two runs of one workflow signed, at two git
// refs: two subjects, but not two people.
func pushTwoRefs(t *testing.T, lab *siglab.Lab) {
	t.Helper()
	client, err := ociregistry.NewClient(ociregistry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := client.Repository(siglab.Registry + "/lab/ours-keyless-two-refs")
	if err != nil {
		t.Fatal(err)
	}
	index, _ := trusttest.PushIndex(t, repo, rand.Text(), "v1.2.3")
	for _, ref := range []string{"refs/tags/v1.2.3", "refs/tags/v1.2.4"} {
		s, err := signer.Keyless(signer.KeylessOptions{
			FulcioURL: siglab.Fulcio, Services: signer.Services{RekorURL: siglab.Rekor1},
			Token: func(ctx context.Context) (string, error) { return lab.TokenFor(ctx, ref) },
		})
		if err != nil {
			t.Fatal(err)
		}
		sig, err := s.SignImage(t.Context(), repo.Name(), index.Digest)
		if err != nil {
			t.Fatal(err)
		}
		att, err := s.Attest(t.Context(), []signer.Subject{{Digest: index.Digest}}, trusttest.PredicateSLSA, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		trusttest.Attach(t, repo, index,
			trusttest.Layer{MediaType: trusttest.MediaTypeBundle, Payload: sig.Bundle},
			trusttest.Layer{MediaType: trusttest.MediaTypeBundle, Payload: att.Bundle})
	}
}

func (c live) signer(tb testing.TB, lab *siglab.Lab) *signer.Signer {
	tb.Helper()
	root, err := os.ReadFile(lab.Path("trust", "trusted_root.json"))
	if err != nil {
		tb.Fatal(err)
	}
	services := c.services
	services.TrustedRoot = root
	if c.keyless {
		s, err := signer.Keyless(signer.KeylessOptions{
			FulcioURL: siglab.Fulcio, Services: services,
			Token: func(ctx context.Context) (string, error) { return lab.Token(ctx) },
		})
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}
	key, err := os.ReadFile(lab.Path("keys", "cosign.key"))
	if err != nil {
		tb.Fatal(err)
	}
	s, err := signer.FromKey(key, []byte("lab"), services)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// pushSigned pushes an index, its signature and two attestations in both
// forms, and once more in the legacy form alone, and returns the references by
// digest. Where there are bundles, cosign 2 looks at nothing else.
func pushSigned(tb testing.TB, s *signer.Signer, name string) (both, tags string) {
	tb.Helper()
	return pushForms(tb, s, "lab/"+name, true), pushForms(tb, s, "tags/"+name, false)
}

func pushForms(tb testing.TB, s *signer.Signer, name string, bundles bool) string {
	tb.Helper()
	client, err := ociregistry.NewClient(ociregistry.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	repo, err := client.Repository(siglab.Registry + "/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	index, _ := trusttest.PushIndex(tb, repo, name+" "+rand.Text(), "v1.2.3")
	sig, err := s.SignImage(tb.Context(), repo.Name(), index.Digest)
	if err != nil {
		tb.Fatal(err)
	}
	var layers []trusttest.Layer
	add := func(x signer.Signed) {
		layers = append(layers, trusttest.Layer(x.Legacy))
		if bundles {
			layers = append(layers, trusttest.Layer{MediaType: trusttest.MediaTypeBundle, Payload: x.Bundle})
		}
	}
	add(sig)
	for predicateType, predicate := range map[string]string{
		trusttest.PredicateSLSA: `{"buildDefinition":{"buildType":"https://lab.invalid/build","externalParameters":{}},"runDetails":{"builder":{"id":"https://lab.invalid/builder"}}}`,
		trusttest.PredicateSPDX: `{"spdxVersion":"SPDX-2.3"}`,
	} {
		att, err := s.Attest(tb.Context(), []signer.Subject{{Name: repo.Name(), Digest: index.Digest}}, predicateType, []byte(predicate))
		if err != nil {
			tb.Fatal(err)
		}
		add(att)
	}
	trusttest.Attach(tb, repo, index, layers...)
	return repo.Name() + "@" + index.Digest.String()
}

// blob has cosign verify plain bytes.
func (c live) blob(t *testing.T, lab *siglab.Lab, s *signer.Signer) {
	t.Helper()
	sums, bundle := filepath.Join(t.TempDir(), "SHA256SUMS"), filepath.Join(t.TempDir(), "SHA256SUMS.sigstore.json")
	raw, err := s.SignBlob(t.Context(), []byte("sums\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{sums: []byte("sums\n"), bundle: raw} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []int{2, 3} {
		args := slices.Concat([]string{"verify-blob", "--new-bundle-format=true", "--bundle", bundle}, c.bundleFlags(lab), []string{sums})
		if _, err := lab.Cosign(t.Context(), version, args...); err != nil {
			t.Error(err)
		}
	}
}

type command struct {
	version int
	args    []string
}

// whoFlags say who signed.
func (c live) whoFlags(lab *siglab.Lab) []string {
	if c.keyless {
		return []string{"--certificate-identity", siglab.Subject, "--certificate-oidc-issuer", siglab.Issuer, "--insecure-ignore-sct"}
	}
	return []string{"--key", lab.Path("keys", "cosign.pub")}
}

func rootFlags(lab *siglab.Lab) []string {
	return []string{"--trusted-root", lab.Path("trust", "trusted_root.json")}
}

func (c live) legacyFlags(lab *siglab.Lab, version int) []string {
	flags := c.whoFlags(lab)
	if version == 3 {
		flags = append(flags, rootFlags(lab)...)
	}
	if !c.log {
		flags = append(flags, "--insecure-ignore-tlog")
	}
	if c.stamp {
		flags = append(flags, "--use-signed-timestamps")
	}
	return flags
}

func (c live) bundleFlags(lab *siglab.Lab) []string {
	flags := append(c.whoFlags(lab), rootFlags(lab)...)
	if c.services.RekorURL == "" {
		flags = append(flags, "--insecure-ignore-tlog")
	}
	if c.stamp {
		flags = append(flags, "--use-signed-timestamps")
	}
	return flags
}

// commands are cosign's, for each form: the legacy one and the bundle, the
// signature and two attestations.
func (c live) commands(lab *siglab.Lab, at, tags string) []command {
	bundle := c.bundleFlags(lab)
	var all []command
	for _, version := range []int{2, 3} {
		legacy := c.legacyFlags(lab, version)
		all = append(all, command{version, slices.Concat([]string{"verify", "--new-bundle-format=false"}, legacy, []string{tags})})
		for _, kind := range []string{"slsaprovenance1", "spdxjson"} {
			all = append(all,
				command{version, slices.Concat([]string{"verify-attestation", "--new-bundle-format=false", "--type", kind}, legacy, []string{tags})},
				command{version, slices.Concat([]string{"verify-attestation", "--new-bundle-format=true", "--type", kind}, bundle, []string{at})})
		}
	}
	// cosign 2 has no command for signatures in bundles; its attestation
	// command reads them.
	return append(all,
		command{2, slices.Concat([]string{"verify-attestation", "--new-bundle-format=true", "--type", trusttest.PredicateSignature}, bundle, []string{at})},
		command{3, slices.Concat([]string{"verify", "--new-bundle-format=true"}, bundle, []string{at})})
}

// wrong are commands that ask for another signer and so must fail.
func (c live) wrong(lab *siglab.Lab, at, tags string) []command {
	replace := func(flags []string) []string {
		flags = slices.Clone(flags)
		for i, f := range flags {
			switch f {
			case "--key":
				flags[i+1] = lab.Path("keys", "other.pub")
			case "--certificate-identity":
				flags[i+1] += "x"
			}
		}
		return flags
	}
	return []command{
		{2, slices.Concat([]string{"verify", "--new-bundle-format=false"}, replace(c.legacyFlags(lab, 2)), []string{tags})},
		{3, slices.Concat([]string{"verify", "--new-bundle-format=true"}, replace(c.bundleFlags(lab)), []string{at})},
	}
}
