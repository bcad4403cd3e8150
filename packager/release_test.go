package packager_test

import (
	"context"
	"crypto"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/opencontainers/go-digest"
	"github.com/sigstore/cosign/v2/pkg/cosign"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// keyPair returns a signer with a fresh key, and a verifier for it.
func keyPair(t testing.TB) (*packager.Signer, signature.Verifier) {
	t.Helper()
	private, public, err := packager.GenerateKeyPair([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := packager.KeySigner(private, []byte("secret"), packager.SigningServices{})
	if err != nil {
		t.Fatal(err)
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return signer, verifier
}

// cosignVerify checks one digest as cosign does: the legacy signature, and the
// predicate types of bundles and legacy attestations.
func cosignVerify(t testing.TB, repo string, d digest.Digest, verifier signature.Verifier) (signatures int, bundles, legacy map[string]int) {
	t.Helper()
	ref, err := name.NewDigest(repo + "@" + d.String())
	if err != nil {
		t.Fatal(err)
	}
	co := &cosign.CheckOpts{SigVerifier: verifier, ClaimVerifier: cosign.SimpleClaimVerifier, IgnoreTlog: true, Offline: true}
	found, _, err := cosign.VerifyImageSignatures(t.Context(), ref, co)
	if err != nil {
		t.Fatalf("cosign verify %s: %v", ref, err)
	}
	att := &cosign.CheckOpts{SigVerifier: verifier, ClaimVerifier: cosign.IntotoSubjectClaimVerifier, IgnoreTlog: true, Offline: true}
	legacy = map[string]int{}
	atts, _, err := cosign.VerifyImageAttestations(t.Context(), ref, att)
	if err != nil && !errors.As(err, new(*cosign.ErrNoMatchingAttestations)) {
		t.Fatalf("cosign verify-attestation %s: %v", ref, err)
	}
	for _, a := range atts {
		annotations, err := a.Annotations()
		if err != nil {
			t.Fatal(err)
		}
		legacy[annotations["predicateType"]]++
	}
	return len(found), verifyBundles(t, ref, d, verifier), legacy
}

func verifyBundles(t testing.TB, ref name.Digest, d digest.Digest, verifier signature.Verifier) map[string]int {
	t.Helper()
	empty, err := root.NewTrustedRoot(root.TrustedRootMediaType01, nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	co := &cosign.CheckOpts{SigVerifier: verifier, IgnoreTlog: true, Offline: true, NewBundleFormat: true, TrustedMaterial: empty}
	all, hash, err := cosign.GetBundles(t.Context(), ref, co)
	if err != nil {
		t.Fatalf("bundles of %s: %v", ref, err)
	}
	if hash.String() != d.String() {
		t.Fatalf("bundles are about %s", hash)
	}
	types := map[string]int{}
	for _, b := range all {
		raw, err := hexBytes(d)
		if err != nil {
			t.Fatal(err)
		}
		result, err := cosign.VerifyNewBundle(t.Context(), co, artifactOption(raw), b)
		if err != nil {
			t.Fatalf("bundle of %s: %v", ref, err)
		}
		types[result.Statement.GetPredicateType()]++
	}
	return types
}

func TestReleaseIsWhatCosignVerifies(t *testing.T) {
	t.Parallel()
	signer, verifier := keyPair(t)
	for kind, reg := range map[string]*registrytest.Registry{
		"fallback tags": registrytest.New(t), "referrers API": registrytest.NewReferrers(t),
	} {
		scanned := scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64", "linux/arm64"))
		provenance, err := packager.LocalBuild(githubEnv).Provenance()
		if err != nil {
			t.Fatal(err)
		}
		opts := packager.ReleaseOptions{
			PackOptions: packager.PackOptions{Metadata: metadata()}, Signer: signer, Predicates: []packager.Predicate{provenance},
		}
		repo := repository(t, reg.Host+"/demo")
		// The second release must not pile anything up.
		for range 2 {
			released, err := packager.Release(t.Context(), scanned, version(t, "1.0.0"), repo, opts)
			if err != nil {
				t.Fatal(err)
			}
			subjects := []digest.Digest{released.Digest}
			for _, p := range released.Platforms {
				subjects = append(subjects, p.Digest)
			}
			if diff := cmp.Diff(subjects, released.Signed); diff != "" {
				t.Errorf("signed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(subjects, provenDigests(t, released)); diff != "" {
				t.Errorf("the provenance is about (-want +got):\n%s", diff)
			}
			for _, d := range subjects {
				signatures, bundles, legacy := cosignVerify(t, reg.Host+"/demo", d, verifier)
				want := map[string]int{packager.PredicateSPDX: 1, packager.PredicateCycloneDX: 1, packager.PredicateProvenance: 1}
				if diff := cmp.Diff(want, legacy); signatures != 1 || diff != "" {
					t.Errorf("%s: %s has %d signatures, attestations (-want +got):\n%s", kind, d, signatures, diff)
				}
				want["https://sigstore.dev/cosign/sign/v1"] = 1
				if diff := cmp.Diff(want, bundles); diff != "" {
					t.Errorf("%s: bundles of %s (-want +got):\n%s", kind, d, diff)
				}
			}
		}
	}
}

// TestSignAndAttestAfterPush takes the separate commands.
func TestSignAndAttestAfterPush(t *testing.T) {
	t.Parallel()
	signer, verifier := keyPair(t)
	reg := registrytest.New(t)
	repo := repository(t, reg.Host+"/demo")
	layout, packed := pack(t, "1.0.0", scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64", "linux/arm64")))
	if _, err := packager.Push(t.Context(), layout, repo, packager.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := packager.Sign(t.Context(), repo, "1.0.0", signer, packager.SignOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := packager.Attest(t.Context(), repo, "1.0.0", signer, nil, packager.SignOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []digest.Digest{packed.Digest, packed.Platforms[1].Digest} {
		signatures, bundles, legacy := cosignVerify(t, reg.Host+"/demo", d, verifier)
		if signatures != 1 || len(bundles) != 3 || len(legacy) != 2 {
			t.Errorf("%s: %d signatures, bundles %v, attestations %v", d, signatures, bundles, legacy)
		}
	}
	other, otherVerifier := keyPair(t)
	if _, err := packager.Sign(t.Context(), repo, "latest", other, packager.SignOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, v := range []signature.Verifier{verifier, otherVerifier} {
		ref, err := name.NewDigest(reg.Host + "/demo@" + packed.Digest.String())
		if err != nil {
			t.Fatal(err)
		}
		co := &cosign.CheckOpts{SigVerifier: v, ClaimVerifier: cosign.SimpleClaimVerifier, IgnoreTlog: true, Offline: true}
		if _, _, err := cosign.VerifyImageSignatures(t.Context(), ref, co); err != nil {
			t.Errorf("two signers: %v", err)
		}
	}
}

func TestReleaseEqualsPackAndPush(t *testing.T) {
	t.Parallel()
	scanned := scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64", "windows/amd64"))
	_, packed := pack(t, "1.0.0", scanned)
	reg := registrytest.New(t)
	released, err := packager.Release(t.Context(), scanned, version(t, "1.0.0"), repository(t, reg.Host+"/demo"),
		packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata()}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(packed.Platforms, released.Platforms); diff != "" || packed.Digest != released.Digest {
		t.Errorf("release %s differs from package %s:\n%s", released.Digest, packed.Digest, diff)
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	repo := repository(t, reg.Host+"/demo")
	signer, _ := keyPair(t)
	scanned := scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64"))
	opts := packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata()}, Signer: signer, DryRun: true}
	planned, err := packager.Release(t.Context(), scanned, version(t, "1.0.0"), repo, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reg.Gate.Requests() {
		if r.Method != "GET" && r.Method != "HEAD" {
			t.Errorf("dry run: %s %s", r.Method, r.Path)
		}
	}
	opts.DryRun = false
	done, err := packager.Release(t.Context(), scanned, version(t, "1.0.0"), repo, opts)
	if err != nil {
		t.Fatal(err)
	}
	if planned.Digest != done.Digest {
		t.Errorf("planned %s, did %s", planned.Digest, done.Digest)
	}
	for name, diff := range map[string]string{
		"aliases": cmp.Diff(planned.Aliases, done.Aliases, cmp.Comparer(sameVersion)),
		"signed":  cmp.Diff(planned.Signed, done.Signed), "attested": cmp.Diff(planned.Attested, done.Attested),
		"documents": cmp.Diff(planned.Documents, done.Documents),
	} {
		if diff != "" {
			t.Errorf("%s (-planned +done):\n%s", name, diff)
		}
	}
}

func sameVersion(a, b packager.Version) bool { return a.Compare(b) == 0 }

func TestIdenticalReleaseSendsNoBlob(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	repo := repository(t, reg.Host+"/demo")
	signer, _ := keyPair(t)
	opts := packager.ReleaseOptions{Signer: signer, PackOptions: packager.PackOptions{Metadata: metadata()}}
	dir := sampleplugin.Dist(t, "1.0.0", "linux/amd64", "linux/arm64")
	first, err := packager.Release(t.Context(), scan(t, dir), version(t, "1.0.0"), repo, opts)
	if err != nil {
		t.Fatal(err)
	}
	reg.Gate.Forget()
	second, err := packager.Release(t.Context(), scan(t, dir), version(t, "1.0.0"), repo, opts)
	if err != nil {
		t.Fatal(err)
	}
	if second.Uploaded.Blobs != 0 || second.Digest != first.Digest {
		t.Errorf("second release uploaded %+v, digest %s (first %s)", second.Uploaded, second.Digest, first.Digest)
	}
	for _, r := range reg.Gate.Requests() {
		if r.Method == "PATCH" || (r.Method == "PUT" && filepath.Base(filepath.Dir(r.Path)) == "uploads") {
			t.Errorf("second release: %s %s", r.Method, r.Path)
		}
	}
}

func TestPredicatesNeedASigner(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	opts := packager.ReleaseOptions{Predicates: []packager.Predicate{{Type: packager.PredicateProvenance}}}
	_, err := packager.Release(t.Context(), scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64")), version(t, "1.0.0"), repository(t, reg.Host+"/demo"), opts)
	if !errors.Is(err, packager.ErrSigningOptions) || len(reg.Gate.Requests()) != 0 {
		t.Errorf("error = %v after %d requests", err, len(reg.Gate.Requests()))
	}
}

func TestReleaseStopsWithItsContext(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	repo := repository(t, reg.Host+"/demo")
	scanned := scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64"))
	ctx, cancel := context.WithCancel(t.Context())
	opts := packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata(), Report: func(packager.Event) { cancel() }}}
	if _, err := packager.Release(ctx, scanned, version(t, "1.0.0"), repo, opts); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	if _, err := repo.Resolve(t.Context(), "1.0.0"); err == nil {
		t.Error("an interrupted release has a tag")
	}
}

func githubEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "lab-org/lab-plugin",
		"GITHUB_WORKFLOW_REF": "lab-org/lab-plugin/.github/workflows/release.yml@refs/tags/v1.2.3", "GITHUB_REF": "refs/tags/v1.2.3",
		"GITHUB_SHA": "0123456789012345678901234567890123456789", "GITHUB_RUN_ID": "77", "GITHUB_RUN_ATTEMPT": "2",
		"GITHUB_EVENT_NAME": "push", "GITHUB_REPOSITORY_ID": "1", "GITHUB_REPOSITORY_OWNER_ID": "2", "RUNNER_ENVIRONMENT": "github-hosted",
	}[name]
	return v, ok
}

// provenanceFields are what verifiers read of a provenance.
type provenanceFields struct {
	Type, Builder, Repository, Ref, Path, Source, Commit, Run string
}

func fieldsOf(t *testing.T, b packager.Build) provenanceFields {
	t.Helper()
	p, err := b.Provenance()
	if err != nil || p.Type != packager.PredicateProvenance {
		t.Fatalf("%s: %v", p.Type, err)
	}
	var got struct {
		BuildDefinition struct {
			BuildType          string
			ExternalParameters struct {
				Workflow struct{ Repository, Ref, Path string }
			}
			ResolvedDependencies []struct {
				URI    string
				Digest struct{ GitCommit string }
			}
		}
		RunDetails struct {
			Builder  struct{ ID string }
			Metadata struct{ InvocationID string }
		}
	}
	if err := json.Unmarshal(p.Content, &got); err != nil {
		t.Fatal(err)
	}
	w := got.BuildDefinition.ExternalParameters.Workflow
	f := provenanceFields{
		Type: got.BuildDefinition.BuildType, Builder: got.RunDetails.Builder.ID, Repository: w.Repository, Ref: w.Ref, Path: w.Path,
		Run: got.RunDetails.Metadata.InvocationID,
	}
	if d := got.BuildDefinition.ResolvedDependencies; len(d) > 0 {
		f.Source, f.Commit = d[0].URI, d[0].Digest.GitCommit
	}
	return f
}

// TestCertifiedBuild: provenance of a keyless signer says what its certificate
// says, field by field.
func TestCertifiedBuild(t *testing.T) {
	t.Parallel()
	const commit = "0123456789012345678901234567890123456789"
	tests := []struct {
		name string
		c    packager.Certified
		want provenanceFields
		ok   bool
	}{
		{
			"GitHub", packager.Certified{
				Identity: "https://github.com/o/p/.github/workflows/r.yml@refs/tags/v1.2.3", Issuer: "https://token.actions.githubusercontent.com",
				BuildSigner: "https://github.com/o/shared/.github/workflows/publish.yml@refs/tags/v7",
				BuildConfig: "https://github.com/o/p/.github/workflows/r.yml@refs/tags/v1.2.3",
				Repository:  "https://github.com/o/p", Ref: "refs/tags/v1.2.3", Commit: commit, Run: "https://github.com/o/p/actions/runs/77/attempts/2",
			}, provenanceFields{
				packager.BuildTypeGitHub, "https://github.com/o/shared/.github/workflows/publish.yml@refs/tags/v7", "https://github.com/o/p", "refs/tags/v1.2.3",
				".github/workflows/r.yml", "git+https://github.com/o/p@refs/tags/v1.2.3", commit, "https://github.com/o/p/actions/runs/77/attempts/2",
			}, true,
		},
		{
			"GitLab", packager.Certified{
				Identity: "https://gitlab.com/g/p//.gitlab-ci.yml@refs/tags/v1.2.3", Issuer: "https://gitlab.com",
				BuildSigner: "https://gitlab.com/g/p//.gitlab-ci.yml@refs/tags/v1.2.3", BuildConfig: "https://gitlab.com/g/p//.gitlab-ci.yml@refs/tags/v1.2.3",
				Repository: "https://gitlab.com/g/p", Ref: "refs/tags/v1.2.3", Commit: commit, Run: "https://gitlab.com/g/p/-/jobs/5",
			}, provenanceFields{
				packager.BuildTypeGitLab, "https://gitlab.com/g/p//.gitlab-ci.yml@refs/tags/v1.2.3", "https://gitlab.com/g/p", "refs/tags/v1.2.3",
				".gitlab-ci.yml", "git+https://gitlab.com/g/p@refs/tags/v1.2.3", commit, "https://gitlab.com/g/p/-/jobs/5",
			}, true,
		},
		{
			"another system", packager.Certified{
				BuildSigner: "https://ci.example.com/p/1", BuildConfig: "https://ci.example.com/p/config", Repository: "https://git.example.com/p", Ref: "refs/heads/main",
			}, provenanceFields{
				packager.BuildTypeOther, "https://ci.example.com/p/1", "https://git.example.com/p", "refs/heads/main", "https://ci.example.com/p/config",
				"git+https://git.example.com/p@refs/heads/main", "", "",
			}, true,
		},
		{"a person", packager.Certified{Identity: "me@example.com", Issuer: "https://accounts.example.com"}, provenanceFields{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, ok := packager.CertifiedBuild(tt.c)
			if ok != tt.ok {
				t.Fatalf("a certified build: %t", ok)
			}
			if !ok {
				return
			}
			if diff := cmp.Diff(tt.want, fieldsOf(t, b)); diff != "" {
				t.Errorf("provenance (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLocalBuild: whatever the variables say, nothing that a builder is known by
// gets into the provenance of a key.
func TestLocalBuild(t *testing.T) {
	t.Parallel()
	gitlab := map[string]string{
		"GITLAB_CI": "true", "CI_SERVER_URL": "https://gitlab.com", "CI_RUNNER_ID": "12", "CI_PROJECT_URL": "https://u:p@gitlab.com/g/p",
		"CI_COMMIT_TAG": "v1.2.3", "CI_COMMIT_REF_NAME": "v1.2.3", "CI_COMMIT_SHA": "abc", "CI_JOB_URL": "https://u:p@gitlab.com/g/p/-/jobs/5",
		"CI_CONFIG_PATH": ".gitlab-ci.yml", "CI_JOB_NAME": "release",
	}
	local := provenanceFields{Type: packager.BuildTypeLocal, Builder: packager.BuildTypeLocal}
	github := local
	github.Source, github.Commit = "git+https://github.com/lab-org/lab-plugin@refs/tags/v1.2.3", "0123456789012345678901234567890123456789"
	github.Run = "https://github.com/lab-org/lab-plugin/actions/runs/77/attempts/2"
	pipeline := local
	pipeline.Source, pipeline.Commit, pipeline.Run = "git+https://gitlab.com/g/p@refs/tags/v1.2.3", "abc", "https://gitlab.com/g/p/-/jobs/5"
	for _, tt := range []struct {
		name string
		env  func(string) (string, bool)
		want provenanceFields
	}{
		{"GitHub's variables", githubEnv, github},
		{"GitLab's variables", func(n string) (string, bool) { v, ok := gitlab[n]; return v, ok }, pipeline},
		{"none", func(string) (string, bool) { return "", false }, local},
	} {
		b := packager.LocalBuild(tt.env)
		if diff := cmp.Diff(tt.want, fieldsOf(t, b)); diff != "" {
			t.Errorf("%s: provenance (-want +got):\n%s", tt.name, diff)
		}
		p, err := b.Provenance()
		if err != nil || strings.Contains(string(p.Content), "u:p@") {
			t.Errorf("%s: %v\n%s", tt.name, err, p.Content)
		}
	}
}

func hexBytes(d digest.Digest) ([]byte, error) { return hex.DecodeString(d.Encoded()) }

func artifactOption(raw []byte) verify.ArtifactPolicyOption {
	return verify.WithArtifactDigest("sha256", raw)
}
