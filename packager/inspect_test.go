package packager_test

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	runner "gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/installer"

	"github.com/radome-io/fleeting-plugin-openstack/internal/secureurl"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// TestInspectShowsAll also has the runner's installer take the signed release.
// TestInspectShowsAll is INTEROP 35, among others: what a plugin asks of the
// runner is shown.
func TestInspectShowsAll(t *testing.T) {
	t.Parallel()
	signer, verifier := keyPair(t)
	public, err := verifier.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	keyID := fmt.Sprintf("%x", sha256.Sum256(der))
	provenance, err := packager.LocalBuild(githubEnv).Provenance()
	if err != nil {
		t.Fatal(err)
	}
	meta := metadata()
	meta.MinimumRunner = "17.9"
	for i, reg := range []*registrytest.Registry{registrytest.New(t), registrytest.NewReferrers(t)} {
		repo := repository(t, reg.Host+"/group/demo")
		released, err := packager.Release(t.Context(), scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64", "linux/arm64")), version(t, "1.0.0"), repo,
			packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: meta}, Signer: signer, Predicates: []packager.Predicate{provenance}})
		if err != nil {
			t.Fatal(err)
		}
		report, err := packager.Inspect(t.Context(), repo, "1.0", packager.InspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if report.Digest != released.Digest || report.Version != "1.0.0" || report.MinimumRunner != "17.9" {
			t.Errorf("report: %+v", report)
		}
		if diff := cmp.Diff([]string{"1.0.0", "1.0", "1", "latest"}, report.Tags); diff != "" {
			t.Errorf("tags (-want +got):\n%s", diff)
		}
		count := map[string]int{}
		for _, s := range report.Signatures {
			count[s.Subject+" "+s.Form]++
			if want := map[string]string{"tag": "", "bundle": keyID}[s.Form]; s.Key != want {
				t.Errorf("%s, %s: key %q, want %q", s.Subject, s.Form, s.Key, want)
			}
		}
		for _, a := range report.Attestations {
			count[a.Subject+" "+a.Form+" "+a.PredicateType]++
			if a.PredicateType == packager.PredicateProvenance && a.Claims.Source != "git+https://github.com/lab-org/lab-plugin@refs/tags/v1.2.3" {
				t.Errorf("provenance: %+v", a)
			}
		}
		components := map[string]int{}
		for _, d := range report.Documents {
			if have, ok := components[d.Subject]; ok && have != d.Components {
				t.Errorf("%s: %d components in one format, %d in the other", d.Subject, have, d.Components)
			}
			components[d.Subject] = d.Components
			count[d.Subject+" "+d.MediaType]++
			if d.Components < 2 {
				t.Errorf("document: %+v", d)
			}
		}
		want := map[string]int{}
		for _, subject := range []string{"index", "linux/amd64", "linux/arm64"} {
			for _, form := range []string{"tag", "bundle"} {
				want[subject+" "+form] = 1
				for _, p := range []string{packager.PredicateSPDX, packager.PredicateCycloneDX, packager.PredicateProvenance} {
					want[subject+" "+form+" "+p] = 1
				}
			}
			want[subject+" application/spdx+json"], want[subject+" application/vnd.cyclonedx+json"] = 1, 1
		}
		if diff := cmp.Diff(want, count); diff != "" {
			t.Errorf("what hangs off (-want +got):\n%s", diff)
		}
		if runtime.GOOS != "linux" {
			continue // the runner finds none for its platform
		}
		host := portless(t, fmt.Sprintf("10.1.2.%d", i), reg)
		if err := runner.Install(t.Context(), host+"/group/demo:latest", runner.WithDirectory(t.TempDir())); err != nil {
			t.Errorf("the runner's installer: %v", err)
		}
	}
}

func TestInspectRefusesOtherThings(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	repo := repository(t, reg.Host+"/demo")
	releasePlain(t, repo, "1.0.0")
	if _, err := packager.Inspect(t.Context(), repo, "9.9.9", packager.InspectOptions{}); err == nil {
		t.Error("no such tag: no error")
	}
}

// TestLayersBeyondTheMemory are compressed twice and are what Pack writes.
func TestLayersBeyondTheMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	noise := make([]byte, 30<<20) // does not compress
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"linux/amd64", "linux/arm64"} {
		sampleplugin.Copy(t, sampleplugin.Build(t, p, "1.0.0"), filepath.Join(dir, p, "plugin"), 0o755)
		sampleplugin.Write(t, filepath.Join(dir, p, "data"), noise, 0o644)
	}
	scanned := scan(t, dir)
	_, packed := pack(t, "1.0.0", scanned)
	reg := registrytest.New(t)
	repo := repository(t, reg.Host+"/demo")
	released, err := packager.Release(t.Context(), scanned, version(t, "1.0.0"), repo, packager.ReleaseOptions{
		PackOptions: packager.PackOptions{Metadata: metadata(), Parallel: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	if released.Digest != packed.Digest {
		t.Errorf("released %s, packed %s", released.Digest, packed.Digest)
	}
	complete(t, repo, "large layers")
}

// TestChecksums is INTEROP 25: digests for those who take the plain executables.
func TestChecksums(t *testing.T) {
	t.Parallel()
	dir := sampleplugin.Dist(t, "1.0.0", "linux/amd64", "windows/amd64")
	signer, _ := keyPair(t)
	for range 2 {
		sums, err := packager.WriteChecksums(t.Context(), scan(t, dir), signer)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(sums.File)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(raw), "\n"); lines != 2 || !strings.Contains(string(raw), "  windows/amd64/plugin.exe\n") {
			t.Errorf("SHA256SUMS:\n%s", raw)
		}
		bundle, err := os.ReadFile(sums.Bundle)
		if err != nil || !strings.Contains(string(bundle), "messageSignature") {
			t.Errorf("bundle: %v\n%s", err, bundle)
		}
	}
	unsigned, err := packager.WriteChecksums(t.Context(), scan(t, dir), nil)
	if err != nil || unsigned.Bundle != "" {
		t.Errorf("unsigned: %+v, %v", unsigned, err)
	}
}

// TestIdentity asks a token service as GitHub's.
func TestIdentity(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer abc":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Query().Get("audience") != "sigstore" || r.URL.Query().Get("api-version") != "2":
			w.WriteHeader(http.StatusBadRequest)
		default:
			_, _ = w.Write([]byte(`{"value": "a.b.c"}`))
		}
	}))
	t.Cleanup(server.Close)
	tests := []struct {
		name  string
		env   map[string]string
		token string
		err   error
	}{
		{"none", nil, "", packager.ErrNoIdentity},
		{"gitlab", map[string]string{"SIGSTORE_ID_TOKEN": "x.y.z"}, "x.y.z", nil},
		{"github", map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": server.URL + "?api-version=2", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "abc"}, "a.b.c", nil},
		{"github, no permission", map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": server.URL}, "", packager.ErrNoIdentity},
		{"github, in clear text", map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": "http://actions.invalid/?api-version=2", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "abc"}, "", secureurl.ErrInsecure},
		{"github, refused", map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": server.URL + "?api-version=2", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "no"}, "", packager.ErrToken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			source, err := packager.DetectIdentity(func(n string) (string, bool) { v, ok := tt.env[n]; return v, ok }, server.Client())
			token := ""
			if err == nil {
				token, err = source(t.Context())
			}
			if token != tt.token || !errors.Is(err, tt.err) {
				t.Errorf("token %q, error %v", token, err)
			}
		})
	}
}

func TestConnect(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"demo", "registry.example.com/demo:1.2.3", "registry.example.com/UPPER"} {
		if _, err := packager.Connect(name, packager.ConnectOptions{}); !errors.Is(err, packager.ErrReference) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	reg := registrytest.New(t, registrytest.WithPassword("user", "secret"))
	config := filepath.Join(t.TempDir(), "config.json")
	// base64 of user:secret
	sampleplugin.Write(t, config, []byte(`{"auths": {"`+reg.Host+`": {"auth": "dXNlcjpzZWNyZXQ="}}}`), 0o600)
	layout, _ := pack(t, "1.0.0", scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64")))
	repo, err := packager.Connect(reg.Host+"/demo", packager.ConnectOptions{CredentialFiles: []string{config}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := packager.Push(t.Context(), layout, repo, packager.PushOptions{}); err != nil {
		t.Errorf("with a password: %v", err)
	}
	anonymous, err := packager.Connect(reg.Host+"/demo", packager.ConnectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := packager.Push(t.Context(), layout, anonymous, packager.PushOptions{}); err == nil {
		t.Error("without a password: no error")
	}
}
