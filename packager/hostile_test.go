package packager_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// TestListedVersionThatIsGone: registries go on listing deleted tags for a
// while, some for ever.
func TestListedVersionThatIsGone(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	repo := repository(t, reg.Host+"/gone")
	releasePlain(t, repo, "1.0.0")
	reg.Gate.Break(t, registrytest.Fault{Path: "/tags/list$", Status: http.StatusOK, Body: `{"name": "gone", "tags": ["1.0.0", "1.0.1", "1.5.0", "9.9.9"]}`})
	dir := t.TempDir()
	sampleplugin.Write(t, dir+"/linux/amd64/plugin", append(sampleplugin.ELF(), "1.0.1"...), 0o755)
	for _, want := range []bool{true, false} { // a plan to move them, and after it was done, none
		planned, err := packager.Release(t.Context(), scan(t, dir), version(t, "1.0.1"), repo,
			packager.ReleaseOptions{DryRun: true, PackOptions: packager.PackOptions{Metadata: metadata(), SkipSBOM: true}})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range planned.Aliases {
			if a.Version.String() != "1.0.1" || a.Moved != want {
				t.Errorf("planned: %s → %s, moved %t", a.Tag, a.Version, a.Moved)
			}
		}
		releasePlain(t, repo, "1.0.1")
	}
	done := releasePlain(t, repo, "1.0.1")
	reg.Gate.Mend()
	got := tags(t, repo)
	for _, alias := range []string{"1.0", "1", "latest"} {
		if got[alias] != done.Digest.String() {
			t.Errorf("%s is %s, want 1.0.1, %s", alias, got[alias], done.Digest)
		}
	}
}

// TestLargeEvidenceOfOthers: what somebody else attested is no reason not to
// sign.
func TestLargeEvidenceOfOthers(t *testing.T) {
	t.Parallel()
	signer, _ := keyPair(t)
	reg := registrytest.New(t)
	repo := repository(t, reg.Host+"/large")
	done := releasePlain(t, repo, "1.0.0")
	content := []byte(`{"payload": "` + strings.Repeat("A", 5<<20) + `"}`)
	large := artifact.Describe(artifact.MediaTypeDSSE, content)
	config, empty := artifact.EmptyConfig()
	for desc, content := range map[digest.Digest][]byte{large.Digest: content, config.Digest: empty} {
		if _, err := repo.PushBlob(t.Context(), ocispec.Descriptor{Digest: desc, Size: int64(len(content))},
			func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }); err != nil {
			t.Fatal(err)
		}
	}
	desc, manifest, err := artifact.EncodeManifest(artifact.ManifestInput{Config: config, Layers: []ocispec.Descriptor{large}})
	if err != nil {
		t.Fatal(err)
	}
	tag := trusttest.Tag(done.Digest, "att")
	if err := repo.PushManifest(t.Context(), desc, manifest, tag); err != nil {
		t.Fatal(err)
	}
	predicate := packager.Predicate{Type: "https://example.com/scan/v1", Content: []byte(`{}`)}
	if _, err := packager.Attest(t.Context(), repo, "1.0.0", signer, []packager.Predicate{predicate}, packager.SignOptions{}); err != nil {
		t.Fatal(err)
	}
	report, err := packager.Inspect(t.Context(), repo, "1.0.0", packager.InspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]int{}
	for _, a := range report.Attestations {
		if a.PredicateType == predicate.Type && a.Subject == "index" {
			forms[a.Form]++
		}
	}
	if diff := cmp.Diff(map[string]int{"tag": 1, "bundle": 1}, forms); diff != "" {
		t.Errorf("attestations (-want +got):\n%s", diff)
	}
}

// TestLinksLoseTheirPasswords also where a link cannot be parsed.
func TestLinksLoseTheirPasswords(t *testing.T) {
	t.Parallel()
	for _, link := range []string{
		"https://user:s3cret@example.com/a", "https://user:s3cret%zz@example.com/a", "https://gitlab-ci-token:s3cret@example.com:x/a.git",
	} {
		b := packager.Build{Type: "t", Builder: "b", Source: "git+" + link, Invocation: link}
		p, err := b.Provenance()
		if err != nil || strings.Contains(string(p.Content), "s3cret") {
			t.Errorf("%s: %v\n%s", link, err, p.Content)
		}
		env := map[string]string{"GITLAB_CI": "true", "CI_PROJECT_URL": link}
		m, err := packager.DetectMetadata(func(n string) (string, bool) { v, ok := env[n]; return v, ok })
		if err != nil || strings.Contains(m.Source+m.URL, "s3cret") {
			t.Errorf("%s: %v, %q %q", link, err, m.Source, m.URL)
		}
		build := packager.LocalBuild(func(n string) (string, bool) { v, ok := env[n]; return v, ok })
		if p, err = build.Provenance(); err != nil || strings.Contains(string(p.Content), "s3cret") {
			t.Errorf("%s: %v\n%s", link, err, p.Content)
		}
	}
}
