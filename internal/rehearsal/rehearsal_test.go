//go:build rehearsal

package rehearsal_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/interop/siglab"
)

const (
	version  = "1.2.3"
	platform = "linux/amd64"
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

// release takes the steps of .github/workflows/release.yml.
func release(t *testing.T, lab *siglab.Lab) {
	t.Helper()
	work := t.TempDir()
	one, other := clone(t, filepath.Join(work, "one")), clone(t, filepath.Join(work, "another", "machine"))

	// 1. Build on two machines that share nothing.
	step(t, "build", func() { run(t, one, nil, "dist", "release-files") })
	step(t, "rebuild", func() { run(t, other, []string{"GOCACHE=" + filepath.Join(work, "cache")}, "dist") })
	step(t, "its files", func() { run(t, other, nil, "release-files") })

	// 2. Compare, as the job "publish" does with what it downloaded.
	publisher := clone(t, filepath.Join(work, "publisher"))
	download(t, filepath.Join(one, "build", "dist"), filepath.Join(publisher, "downloaded", "dist"))
	download(t, filepath.Join(other, "build", "dist"), filepath.Join(publisher, "downloaded", "dist-again"))
	step(t, "compare", func() { run(t, publisher, nil, "release-compare") })

	// 3. Publish, without a key, as a workflow at the present commit.
	forge := serveGit(t, publisher, version)
	token, err := lab.TokenAt(t.Context(), forge.commit)
	if err != nil {
		t.Fatal(err)
	}
	flags := keylessFlags(lab) + " --identity-token " + token
	reference, image := newReference("fleeting-plugin-openstack", version), newReference("fleeting-plugin", version)
	step(t, "publish", func() {
		run(t, publisher, forge.github(), "release-publish", "RELEASE_REF="+reference, "RELEASE_FLAGS="+flags)
	})
	step(t, "image", func() { run(t, publisher, forge.github(), "release-image", "IMAGE_REF="+image, "RELEASE_FLAGS="+flags) })
	step(t, "attest", func() { t.Log(run(t, publisher, forge.github(), "release-attest", "RELEASE_FLAGS="+flags)) })

	// 4. Install as a user would, on a machine that has nothing but the policy,
	// and build it once more.
	policy := writePolicy(t, lab)
	user := clone(t, filepath.Join(work, "user"))
	check := []string{"RELEASE_REF=" + reference, "CHECK_FLAGS=--policy " + policy, "INSTALL_FLAGS=--as " + installedAs}
	step(t, "check", func() { run(t, user, nil, append([]string{"release-check"}, check...)...) })
	installed := filepath.Join(user, "build", "installed", filepath.FromSlash(installedAs), version, "plugin")
	if got, want := read(t, installed), read(t, filepath.Join(one, "build", "dist", "plugin", "linux", "amd64", "plugin")); !bytes.Equal(got, want) {
		t.Errorf("what was installed (%d bytes) is not what was built (%d bytes)", len(got), len(want))
	}
	download(t, filepath.Join(publisher, "build", "dist", "bin"), filepath.Join(user, "build", "dist", "bin"))
	step(t, "check files", func() { t.Log(run(t, user, nil, append([]string{"release-check-files"}, check...)...)) })
	step(t, "rebuild from the provenance", func() { t.Log(run(t, user, nil, append([]string{"release-rebuild"}, check...)...)) })

	// 5. Both cosigns, and gh.
	for _, v := range []int{2, 3} {
		step(t, fmt.Sprintf("cosign %d", v), func() { cosign(t, lab, v, reference, image) })
	}
	step(t, "agreement", func() { agreement(t, lab, user) })
	step(t, "gh on the registry", func() { ghArtifact(t, lab, user, reference, image) })

	changedLine(t, other, publisher)
}

// changedLine changes one line on one of the machines, which is told apart.
func changedLine(t *testing.T, other, publisher string) {
	t.Helper()
	main := filepath.Join(other, "cmd", "fleeting-plugin-openstack", "main.go")
	write(t, main, string(read(t, main))+"\nfunc init() { println() }\n")
	run(t, other, nil, "dist", "release-files")
	download(t, filepath.Join(other, "build", "dist"), filepath.Join(publisher, "downloaded", "dist-again"))
	out, err := makeIn(t.Context(), publisher, nil, "release-compare")
	if err == nil || !strings.Contains(out, "bin/fleeting-plugin-openstack-linux-amd64, ") || strings.Contains(out, "bin/fleeting-plugin-linux-amd64,") {
		t.Errorf("a changed line was not told apart: %v\n%s", err, out)
	}
}

func cosign(t *testing.T, lab *siglab.Lab, major int, references ...string) {
	t.Helper()
	args := []string{
		"verify", "--insecure-ignore-sct", "--trusted-root", trustedRoot(lab),
		"--certificate-identity", siglab.Subject, "--certificate-oidc-issuer", siglab.Issuer,
	}
	out, err := lab.Cosign(t.Context(), major, append(args, references...)...)
	if err != nil {
		t.Errorf("cosign %d: %v", major, err)
	}
	t.Logf("cosign %d: %s", major, out)
}

func trustedRoot(lab *siglab.Lab) string { return lab.Path("trust", "trusted_root.json") }

// keylessFlags lead to the lab in place of the public instance.
func keylessFlags(lab *siglab.Lab) string {
	return strings.Join([]string{"--keyless", "--fulcio-url", siglab.Fulcio, "--rekor-url", siglab.Rekor1, "--trusted-root", trustedRoot(lab)}, " ")
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
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "git", "clone", "-q", "--no-hardlinks", source, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	return dir
}

// run calls make in a checkout and returns what it printed.
func run(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	out, err := makeIn(t.Context(), dir, env, args...)
	if err != nil {
		t.Fatalf("make %s: %v\n%s", args[0], err, out)
	}
	return out
}

func makeIn(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "make", append([]string{"--no-print-directory", "VERSION=" + version, "PLATFORMS=" + platform}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// download copies files as an artifact of a pipeline: without their modes.
func download(t *testing.T, source, target string) {
	t.Helper()
	if err := os.RemoveAll(target); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		write(t, filepath.Join(target, rel), string(read(t, path)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
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
