//go:build interop

package interop_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/interop/siglab"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// Exit codes of fleeting-plugin, docs/reference/exit-codes.md.
const (
	exitOK      = 0
	exitRefused = 3
)

// command builds a command of ours.
func command(tb testing.TB, dir, name string, env ...string) string {
	tb.Helper()
	out := filepath.Join(dir, name)
	build := exec.CommandContext(tb.Context(), "go", "build", "-o", out, "github.com/radome-io/fleeting-plugin-openstack/cmd/"+filepath.Base(strings.TrimSuffix(name, ".exe")))
	build.Env = append(os.Environ(), append([]string{"CGO_ENABLED=0"}, env...)...)
	if text, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("building %s: %v\n%s", name, err, text)
	}
	return out
}

// result is what a run of fleeting-plugin left.
type result struct {
	code int
	text string
}

// run runs fleeting-plugin with settings of its own only.
func run(tb testing.TB, tool string, args ...string) result {
	tb.Helper()
	home := tb.TempDir()
	cmd := exec.CommandContext(tb.Context(), tool, args...)
	cmd.Env = []string{"HOME=" + home, "COSIGN_PASSWORD=lab", "PATH=" + os.Getenv("PATH")}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		tb.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String()}
}

// mode is one way of signing a release, with the flags that say so to ours and
// to cosign.
type mode struct {
	name           string
	sign           []string
	legacy, bundle []string // beyond who signed
	keyless        bool
}

func modes() []mode {
	rekor1 := []string{"--rekor-url", siglab.Rekor1}
	rekor2 := []string{"--rekor-url", siglab.Rekor2, "--rekor-version", "2", "--tsa-url", siglab.TSA}
	noLog, stamp := "--insecure-ignore-tlog", "--use-signed-timestamps"
	return []mode{
		{name: "key", legacy: []string{noLog}, bundle: []string{noLog}},
		{name: "key-rekor1", sign: rekor1},
		{name: "keyless-rekor1", sign: rekor1, keyless: true},
		{name: "keyless-rekor2", sign: rekor2, keyless: true, legacy: []string{noLog, stamp}, bundle: []string{stamp}},
	}
}

func (m mode) signFlags(tb testing.TB, lab *siglab.Lab) []string {
	tb.Helper()
	flags := append([]string{"--trusted-root", lab.Path("trust", "trusted_root.json")}, m.sign...)
	if !m.keyless {
		return append(flags, "--key", lab.Path("keys", "cosign.key"))
	}
	token, err := lab.Token(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return append(flags, "--keyless", "--fulcio-url", siglab.Fulcio, "--identity-token", token)
}

func (m mode) cosignFlags(lab *siglab.Lab) []string {
	flags := []string{"--trusted-root", lab.Path("trust", "trusted_root.json")}
	if m.keyless {
		return append(flags, "--certificate-identity", siglab.Subject, "--certificate-oidc-issuer", siglab.Issuer, "--insecure-ignore-sct")
	}
	return append(flags, "--key", lab.Path("keys", "cosign.pub"))
}

// policy is a policy file for the scopes; other asks for another signer.
func (m mode) policy(tb testing.TB, lab *siglab.Lab, other bool, scopes ...string) string {
	tb.Helper()
	signer := fmt.Sprintf("[[rule.key]]\nfile = %q\n", lab.Path("keys", map[bool]string{false: "cosign.pub", true: "other.pub"}[other]))
	if m.keyless {
		subject := siglab.Subject
		if other {
			subject += "x"
		}
		signer = fmt.Sprintf("[[rule.identity]]\nissuer = %q\nsubject = %q\ntrusted-root = %q\ninsecure-no-sct = true\n",
			siglab.Issuer, subject, lab.Path("trust", "trusted_root.json"))
	}
	path := filepath.Join(tb.TempDir(), "policy.toml")
	text := "version = 1\n"
	for _, scope := range scopes {
		text += fmt.Sprintf("[[rule]]\nscope = %q\n%s\n[[rule.attestation]]\ntype = \"sbom\"\n[[rule.attestation]]\ntype = \"provenance\"\n", scope, signer)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// TestReleases publishes with fleeting-plugin, has cosign 2 and 3 verify every
// signature and attestation, and installs under a policy.
func TestReleases(t *testing.T) {
	lab, err := siglab.Open(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	tool, dist := command(t, t.TempDir(), "fleeting-plugin"), executables(t)
	for _, m := range modes() {
		t.Run(m.name, func(t *testing.T) {
			repository := siglab.Registry + "/interop/" + m.name + "-" + strings.ToLower(rand.Text()[:8])
			at := repository + ":1.2.3"
			args := slices.Concat([]string{"release", dist, at, "--no-run", "--no-checksums", "--title", "interop", "--quiet"}, m.signFlags(t, lab))
			if r := run(t, tool, args...); r.code != exitOK {
				t.Fatalf("release: %d\n%s", r.code, r.text)
			}
			for _, d := range digests(t, repository) {
				m.cosign(t, lab, repository+"@"+d)
			}
			for other, code := range map[bool]int{false: exitOK, true: exitRefused} {
				dir := t.TempDir()
				const as = "registry.example/interop/plugin"
				r := run(t, tool, "install", at, "--as", as, "--platform", "linux/amd64", "--dir", dir, "--policy", m.policy(t, lab, other, repository, as))
				if r.code != code {
					t.Errorf("install, another signer %v: exit code %d, want %d\n%s", other, r.code, code, r.text)
				}
			}
		})
	}
}

// executables is a folder with our plugin for two platforms.
func executables(t *testing.T) string {
	t.Helper()
	dist := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		dir := filepath.Join(dist, "linux", arch)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		built := command(t, dir, "fleeting-plugin-openstack", "GOOS=linux", "GOARCH="+arch)
		if err := os.Rename(built, filepath.Join(dir, "plugin")); err != nil {
			t.Fatal(err)
		}
	}
	return dist
}

// digests are those of the index and of every platform's manifest.
func digests(tb testing.TB, repository string) []string {
	tb.Helper()
	client, err := ociregistry.NewClient(ociregistry.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	repo, err := client.Repository(repository)
	if err != nil {
		tb.Fatal(err)
	}
	desc, err := repo.Resolve(tb.Context(), "1.2.3")
	if err != nil {
		tb.Fatal(err)
	}
	raw, err := repo.FetchAll(tb.Context(), desc, 1<<20)
	if err != nil {
		tb.Fatal(err)
	}
	var index ocispec.Index
	if err := json.Unmarshal(raw, &index); err != nil {
		tb.Fatal(err)
	}
	all := []string{desc.Digest.String()}
	for _, m := range index.Manifests {
		all = append(all, m.Digest.String())
	}
	if len(all) != 3 {
		tb.Fatalf("%d digests, want an index and two manifests", len(all))
	}
	return all
}

// cosign has both versions verify one digest's evidence in both forms.
func (m mode) cosign(t *testing.T, lab *siglab.Lab, at string) {
	t.Helper()
	who := m.cosignFlags(lab)
	legacy, bundle := "--new-bundle-format=false", "--new-bundle-format=true"
	check := func(version int, form string, args ...string) {
		flags := m.legacy
		if form == bundle {
			flags = m.bundle
		}
		if _, err := lab.Cosign(t.Context(), version, slices.Concat(args, []string{form}, who, flags, []string{at})...); err != nil {
			t.Error(err)
		}
	}
	check(2, legacy, "verify")
	check(3, legacy, "verify")
	check(3, bundle, "verify")
	for _, kind := range []string{"slsaprovenance1", "spdxjson", "cyclonedx"} {
		check(2, legacy, "verify-attestation", "--type", kind)
		check(3, bundle, "verify-attestation", "--type", kind)
	}
}
