package packager_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

const (
	onceWritten      = "no tag is ever written twice"
	onceWrittenNoAPI = "no tag is ever written twice, and there is no referrers API"
)

// TestReleaseWhereTagsAreImmutable: each tag is written once, so that a release
// completes, cosign verifies it, and a second run writes nothing at all.
// https://github.com/sigstore/cosign/issues/313
func TestReleaseWhereTagsAreImmutable(t *testing.T) {
	t.Parallel()
	for _, behaviour := range []string{onceWritten, onceWrittenNoAPI, "writing a tag twice is forbidden", "version tags are never written twice"} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			signer, verifier := keyPair(t)
			reg := registrytest.NewReferrers(t)
			reg.Behave(t, registrytest.Named(t, behaviour))
			repo := repository(t, reg.Host+"/demo")
			released := releaseSigned(t, repo, "1.0.0", signer, packager.ReleaseOptions{})
			if len(released.Signed) != 2 || len(released.Attested) != 3 {
				t.Errorf("signed %v, attested %v", released.Signed, released.Attested)
			}
			verified(t, reg, released, verifier)

			reg.Gate.Forget()
			again := releaseSigned(t, repository(t, repo.Name()), "1.0.0", signer, packager.ReleaseOptions{})
			if again.Digest != released.Digest {
				t.Errorf("again %s, first %s", again.Digest, released.Digest)
			}
			for _, r := range reg.Gate.Requests() {
				if r.Method == http.MethodPost || strings.Contains(r.Path, "/manifests/sha256-") && r.Method == http.MethodPut {
					t.Errorf("run again: %s %s", r.Method, r.Path)
				}
			}
			verified(t, reg, again, verifier)
		})
	}
}

// releaseSigned publishes a version with provenance.
func releaseSigned(t *testing.T, repo packager.Repository, v string, signer *packager.Signer, opts packager.ReleaseOptions) *packager.Released {
	t.Helper()
	provenance, err := packager.LocalBuild(githubEnv).Provenance()
	if err != nil {
		t.Fatal(err)
	}
	opts.PackOptions, opts.Signer, opts.Predicates = packager.PackOptions{Metadata: metadata()}, signer, []packager.Predicate{provenance}
	released, err := packager.Release(t.Context(), scan(t, sampleplugin.Dist(t, v, "linux/amd64")), version(t, v), repo, opts)
	if err != nil {
		t.Fatal(err)
	}
	return released
}

// verified has cosign verify everything about a release in both forms.
func verified(t *testing.T, reg *registrytest.Registry, released *packager.Released, verifier signature.Verifier) {
	t.Helper()
	all := map[string]int{packager.PredicateSPDX: 1, packager.PredicateCycloneDX: 1, packager.PredicateProvenance: 1}
	for _, d := range []digest.Digest{released.Digest, released.Platforms[0].Digest} {
		signatures, bundles, legacy := cosignVerify(t, reg.Host+"/demo", d, verifier)
		if diff := cmp.Diff(all, legacy); signatures != 1 || diff != "" {
			t.Errorf("%s has %d signatures, attestations (-want +got):\n%s", d, signatures, diff)
		}
		delete(bundles, artifact.PredicateSignature)
		if diff := cmp.Diff(all, bundles); diff != "" {
			t.Errorf("bundles of %s (-want +got):\n%s", d, diff)
		}
	}
}

// TestNextVersionWhereTagsAreImmutable: the next version is published, and aliases
// that cannot move are a warning that says why.
func TestNextVersionWhereTagsAreImmutable(t *testing.T) {
	t.Parallel()
	signer, _ := keyPair(t)
	reg := registrytest.NewReferrers(t)
	reg.Behave(t, registrytest.Named(t, onceWritten))
	repo := repository(t, reg.Host+"/demo")
	first := releaseSigned(t, repo, "1.0.0", signer, packager.ReleaseOptions{})
	second := releaseSigned(t, repo, "1.0.1", signer, packager.ReleaseOptions{})
	want := map[string]string{
		"1.0.0": first.Digest.String(), "1.0": first.Digest.String(), "1": first.Digest.String(), "latest": first.Digest.String(),
		"1.0.1": second.Digest.String(),
	}
	if diff := cmp.Diff(want, tags(t, repo)); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	text := ""
	for _, w := range second.Warnings {
		text += w.String() + "\n"
	}
	for _, tag := range []string{"/demo:1.0:", "/demo:1:", "/demo:latest:"} {
		if !strings.Contains(text, tag) || !strings.Contains(text, "stays on 1.0.0") || !strings.Contains(text, "immutable") {
			t.Errorf("no warning about %s that says why in:\n%s", tag, text)
		}
	}
	// What moves no tag does not move a version either.
	other := scan(t, sampleplugin.Dist(t, "1.0.0-other", "linux/amd64"))
	opts := packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata()}, Replace: true}
	if _, err := packager.Release(t.Context(), other, version(t, "1.0.0"), repo, opts); !errors.Is(err, ociregistry.ErrImmutable) {
		t.Errorf("--replace: %v; want ErrImmutable", err)
	}
}

// TestSecondSignerWhereTagsAreImmutable: a signer who comes later adds a bundle if
// the registry has the referrers API, with a warning about the tag. Without it
// there is no place for a second signature but a repository of its own.
func TestSecondSignerWhereTagsAreImmutable(t *testing.T) {
	t.Parallel()
	for behaviour, possible := range map[string]bool{onceWritten: true, onceWrittenNoAPI: false} {
		signer, _ := keyPair(t)
		second, verifier := keyPair(t)
		reg := registrytest.NewReferrers(t)
		reg.Behave(t, registrytest.Named(t, behaviour))
		repo := repository(t, reg.Host+"/demo")
		released := releaseSigned(t, repo, "1.0.0", signer, packager.ReleaseOptions{})

		signed, err := packager.Sign(t.Context(), repo, "1.0.0", second, packager.SignOptions{})
		switch {
		case possible && (err != nil || len(signed.Warnings) == 0 || signed.Outcomes[0].New != 2):
			t.Errorf("%s: %+v, %v; want two new signatures, and a warning about the tag", behaviour, signed, err)
		case !possible && !errors.Is(err, ociregistry.ErrImmutable):
			t.Errorf("%s: %v; want ErrImmutable", behaviour, err)
		}
		// A form that was asked for by name is no matter of warnings.
		_, err = packager.Sign(t.Context(), repo, "1.0.0", second, packager.SignOptions{Format: packager.FormatTag})
		if !errors.Is(err, ociregistry.ErrImmutable) {
			t.Errorf("%s: by tag only: %v; want ErrImmutable", behaviour, err)
		}

		reg.Behave(t, registrytest.Named(t, onceWrittenNoAPI))
		elsewhere := repository(t, reg.Host+"/signatures")
		apart, err := packager.Sign(t.Context(), repo, "1.0.0", second, packager.SignOptions{Signatures: elsewhere})
		if err != nil || apart.Signatures != elsewhere.Name() || len(apart.Warnings) > 0 {
			t.Errorf("%s: in a repository of its own: %+v, %v", behaviour, apart, err)
		}
		signatures, bundles, _ := cosignVerify(t, reg.Host+"/signatures", released.Digest, verifier)
		if signatures != 1 || bundles[artifact.PredicateSignature] != 1 {
			t.Errorf("%s: %d signatures and bundles %v there", behaviour, signatures, bundles)
		}
	}
}

// TestSignatureFormats publishes in one form only.
func TestSignatureFormats(t *testing.T) {
	t.Parallel()
	for format, want := range map[packager.SignatureFormat]struct{ tags, referrers int }{
		packager.FormatTag: {4, 2}, packager.FormatBundle: {0, 6}, packager.FormatBoth: {4, 6}, "": {4, 6},
	} {
		signer, _ := keyPair(t)
		reg := registrytest.NewReferrers(t)
		repo := repository(t, reg.Host+"/demo")
		released := releaseSigned(t, repo, "1.0.0", signer, packager.ReleaseOptions{Format: format})
		all, err := repo.Tags(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := struct{ tags, referrers int }{}
		for _, tag := range all {
			if strings.HasPrefix(tag, "sha256-") {
				got.tags++
			}
		}
		index, err := repo.Resolve(t.Context(), released.Digest.String())
		if err != nil {
			t.Fatal(err)
		}
		referrers, err := repo.Referrers(t.Context(), index)
		if got.referrers = len(referrers); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", format, got, err, want)
		}
	}
	for name, ok := range map[string]bool{"both": true, "tag": true, "bundle": true, "": false, "legacy": false} {
		if _, err := packager.ParseSignatureFormat(name); (err == nil) != ok || err != nil && !errors.Is(err, packager.ErrSigningOptions) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestReleaseToHiddenRepository: a registry that answers 403 for what does not
// exist lets a first release through, and a second one does not replace it.
// https://github.com/sigstore/cosign/issues/2973
func TestReleaseToHiddenRepository(t *testing.T) {
	t.Parallel()
	signer, verifier := keyPair(t)
	reg := registrytest.NewReferrers(t)
	reg.Behave(t, registrytest.Named(t, "403 for what does not exist"))
	repo := repository(t, reg.Host+"/demo")
	released := releaseSigned(t, repo, "1.0.0", signer, packager.ReleaseOptions{})
	verified(t, reg, released, verifier)
	other := scan(t, sampleplugin.Dist(t, "1.0.0-other", "linux/amd64"))
	_, err := packager.Release(t.Context(), other, version(t, "1.0.0"), repo, packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata()}})
	if !errors.Is(err, packager.ErrPublished) {
		t.Errorf("another one of that version: %v; want ErrPublished", err)
	}
}
