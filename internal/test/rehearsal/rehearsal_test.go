//go:build rehearsal

package rehearsal_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/interop/siglab"
)

const (
	version = "1.2.3"
	// installedAs is a name that the runner can look up; the lab's registry has
	// a port.
	installedAs = "registry.example.com/rehearsal/fleeting-plugin-openstack"
)

// TestRehearsal opens the lab once for everything.
func TestRehearsal(t *testing.T) {
	running := siglab.Runs(t.Context())
	lab, err := siglab.Open(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if !running {
		t.Cleanup(func() {
			if err := lab.Stop(context.WithoutCancel(t.Context()), os.Stderr); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("release", func(t *testing.T) { release(t, lab) })
	t.Run("action", func(t *testing.T) { action(t, lab) })
	t.Run("component", func(t *testing.T) { component(t, lab) })
	t.Run("template", func(t *testing.T) { template(t, lab) })
}

func cosign(t *testing.T, lab *siglab.Lab, major int, subject string, references ...string) {
	t.Helper()
	args := []string{
		"verify", "--insecure-ignore-sct", "--trusted-root", trustedRoot(lab),
		"--certificate-identity", subject, "--certificate-oidc-issuer", siglab.Issuer,
	}
	out, err := lab.Cosign(t.Context(), major, append(args, references...)...)
	if err != nil {
		t.Errorf("cosign %d: %v", major, err)
	}
	t.Logf("cosign %d: %s", major, out)
}

func trustedRoot(lab *siglab.Lab) string { return lab.Path("trust", "trusted_root.json") }

// keylessFlags lead to the lab in place of the public instance, one on each line.
func keylessFlags(lab *siglab.Lab) string {
	return strings.Join([]string{"--fulcio-url=" + siglab.Fulcio, "--rekor-url=" + siglab.Rekor1, "--trusted-root=" + trustedRoot(lab)}, "\n")
}

// newReference is a repository that nobody has used.
func newReference(name, version string) string {
	return fmt.Sprintf("%s/rehearsal-%s/%s:%s", siglab.Registry, strings.ToLower(rand.Text()[:8]), name, version)
}

// writePolicy writes what a user of the lab's registry trusts.
func writePolicy(t *testing.T, lab *siglab.Lab) string {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.toml")
	text := "version = 1\n"
	for _, scope := range []string{siglab.Registry + "/**", installedAs} {
		text += fmt.Sprintf(`[[rule]]
scope = %q
  [[rule.identity]]
  issuer = %q
  subject = %q
  trusted-root = %q
  insecure-no-sct = true
  [[rule.attestation]]
  type = "provenance"
  [[rule.attestation]]
  type = "sbom"
`, scope, siglab.Issuer, siglab.Subject, trustedRoot(lab))
	}
	write(t, policy, text)
	return policy
}

// clone makes a fresh checkout of the repository's present commit.
func clone(t *testing.T, dir string) string {
	t.Helper()
	source, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "git", "clone", "-q", "--no-hardlinks", source, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	return dir
}

func step(t *testing.T, name string, do func()) {
	t.Helper()
	start := time.Now()
	do()
	t.Logf("%s: %s", name, time.Since(start).Round(100*time.Millisecond))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
