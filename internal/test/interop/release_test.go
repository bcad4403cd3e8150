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

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/interop/siglab"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// Exit codes of fleeting-plugin, docs/reference/exit-codes.md.
const (
	exitOK      = 0
	exitRefused = 3
)

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
	// stampOnly: in the legacy form, a timestamp alone proves the time.
	stampOnly bool
}

func modes() []mode {
	rekor1 := []string{"--rekor-url", siglab.Rekor1}
	rekor2 := []string{"--rekor-url", siglab.Rekor2, "--rekor-version", "2", "--tsa-url", siglab.TSA}
	noLog, stamp := "--insecure-ignore-tlog", "--use-signed-timestamps"
	return []mode{
		{name: "key", legacy: []string{noLog}, bundle: []string{noLog}},
		{name: "key-rekor1", sign: rekor1},
		{name: "keyless-rekor1", sign: rekor1, keyless: true},
		{name: "keyless-rekor2", sign: rekor2, keyless: true, stampOnly: true, legacy: []string{noLog, stamp}, bundle: []string{stamp}},
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

// cosignFlags say who signed.
func (m mode) cosignFlags(lab *siglab.Lab) []string {
	var flags []string
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
	t.Parallel()
	lab, err := siglab.Open(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	tool, dist := executables(t)
	for _, m := range modes() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			repository := siglab.Registry + "/interop/" + m.name + "-" + strings.ToLower(rand.Text()[:8])
			at := repository + ":1.2.3"
			args := slices.Concat([]string{"release", dist, at, "--no-run", "--no-checksums", "--title", "interop", "--quiet"}, m.signFlags(t, lab))
			if r := run(t, tool, args...); r.code != exitOK {
				t.Fatalf("release: %d\n%s", r.code, r.text)
			}
			for _, d := range digests(t, repository) {
				m.cosign(t, lab, repository+"@"+d, forms()[0])
			}
			for _, constraint := range []string{"1.2.3", "1.2", "1", "latest"} {
				runnerInstalls(t, siglab.Registry, strings.TrimPrefix(repository, siglab.Registry+"/"), constraint, dist)
			}
			m.installs(t, lab, tool, repository, "1.2.3")
		})
	}
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

// form is how signatures and attestations lie in a registry, --signature-format.
type form struct {
	name        string
	tag, bundle bool
}

func forms() []form {
	return []form{{"both", true, true}, {"tag", true, false}, {"bundle", false, true}}
}

// cosign has both versions verify one digest's signature and attestations in
// the forms that it has. Cosign 2 reads tags only where there is no bundle, and
// has no command for signatures in bundles: that for attestations reads them.
func (m mode) cosign(t *testing.T, lab *siglab.Lab, at string, f form) {
	t.Helper()
	check := func(version int, bundle bool, args ...string) {
		flags := []string{fmt.Sprintf("--new-bundle-format=%t", bundle)}
		if version == 3 || bundle {
			flags = append(flags, "--trusted-root", lab.Path("trust", "trusted_root.json"))
		}
		if bundle {
			flags = append(flags, m.bundle...)
		} else {
			flags = append(flags, m.legacy...)
		}
		if _, err := lab.Cosign(t.Context(), version, slices.Concat(args, flags, m.cosignFlags(lab), []string{at})...); err != nil {
			t.Error(err)
		}
	}
	kinds := []string{"slsaprovenance1", "spdxjson", "cyclonedx"}
	if f.tag {
		check(3, false, "verify")
		for _, kind := range kinds {
			check(3, false, "verify-attestation", "--type", kind)
		}
	}
	if f.tag && !f.bundle {
		check(2, false, "verify")
		for _, kind := range kinds {
			check(2, false, "verify-attestation", "--type", kind)
		}
	}
	if f.bundle {
		check(3, true, "verify")
		for _, kind := range kinds {
			check(3, true, "verify-attestation", "--type", kind)
		}
		for _, kind := range append(kinds, trusttest.PredicateSignature) {
			check(2, true, "verify-attestation", "--type", kind)
		}
	}
}

// TestSignatureFormats has cosign 2 and 3 verify a release that has one form
// alone, and installs it under a policy.
func TestSignatureFormats(t *testing.T) {
	t.Parallel()
	lab, err := siglab.Open(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	tool, dist := executables(t)
	for _, f := range forms()[1:] {
		for _, m := range modes() {
			t.Run(f.name+", "+m.name, func(t *testing.T) {
				t.Parallel()
				repository := registrytest.NewReferrers(t).Host + "/interop/plugin"
				at := repository + ":1.2.3"
				args := slices.Concat([]string{"release", dist, at, "--signature-format", f.name, "--no-run", "--no-checksums", "--quiet"}, m.signFlags(t, lab))
				if r := run(t, tool, args...); r.code != exitOK {
					t.Fatalf("release: %d\n%s", r.code, r.text)
				} else if strings.Contains(r.text, "no place there") != (m.stampOnly && !f.bundle) {
					t.Errorf("release, on what the form has no place for:\n%s", r.text)
				}
				for _, d := range digests(t, repository) {
					m.cosign(t, lab, repository+"@"+d, f)
				}
				if m.stampOnly && !f.bundle {
					m.needsLog(t, lab, tool, repository)
					return
				}
				m.installs(t, lab, tool, repository, "1.2.3")
			})
		}
	}
}

// needsLog: where the form has no place for the log's entry, a policy refuses
// unless it takes the timestamp alone.
func (m mode) needsLog(t *testing.T, lab *siglab.Lab, tool, repository string) {
	t.Helper()
	strict := m.policy(t, lab, false, repository)
	text, err := os.ReadFile(strict)
	if err != nil {
		t.Fatal(err)
	}
	lenient := filepath.Join(t.TempDir(), "policy.toml")
	content := strings.ReplaceAll(string(text), "insecure-no-sct = true\n", "insecure-no-sct = true\ntimestamp-suffices = true\n")
	if err := os.WriteFile(lenient, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for policy, code := range map[string]int{strict: exitRefused, lenient: exitOK} {
		if r := run(t, tool, "verify", repository+":1.2.3", "--platform", "linux/amd64", "--policy", policy); r.code != code {
			t.Errorf("verify: exit code %d, want %d\n%s", r.code, code, r.text)
		}
	}
}

// installs has ours install under the policy of the signer, and refuse under
// that of another.
func (m mode) installs(t *testing.T, lab *siglab.Lab, tool, repository, version string) {
	t.Helper()
	const as = "registry.example/interop/plugin"
	for other, code := range map[bool]int{false: exitOK, true: exitRefused} {
		r := run(t, tool, "install", repository+":"+version, "--as", as, "--platform", "linux/amd64", "--dir", t.TempDir(),
			"--policy", m.policy(t, lab, other, repository, as))
		if r.code != code {
			t.Errorf("install of %s, another signer %v: exit code %d, want %d\n%s", version, other, r.code, code, r.text)
		}
	}
}
