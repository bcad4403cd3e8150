//go:build rehearsal

package rehearsal_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/interop/siglab"
)

// The provenance bundles of a release.
const (
	filesBundle    = "provenance.sigstore.json"
	artifactBundle = "artifact.sigstore.json"
)

// shown is a folder with everything that a release shows, as downloaded, and
// those who judge it.
type shown struct {
	dir, tool, roots string
	// subject and repository are those of the certificates.
	subject, repository string
	lab                 *siglab.Lab
}

// verdict is a question, and the answer that every tool must give.
type verdict struct {
	name, file, bundle  string
	subject, repository string
	ok                  bool
}

// agreement asks our tool, GitHub's gh and both cosigns about what a release
// shows: they must all say the same.
func agreement(t *testing.T, lab *siglab.Lab, checkout, subject string) {
	t.Helper()
	s := shown{
		dir: filepath.Join(checkout, "build", "dist", "bin"), tool: filepath.Join(t.TempDir(), "fleeting-plugin"),
		subject: subject, repository: ourRepository, lab: lab,
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.tool, "./cmd/fleeting-plugin")
	build.Dir = checkout
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the tool: %v\n%s", err, out)
	}
	var err error
	if s.roots, err = lab.TrustedRootLines(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filesBundle {
			s.judge(t, verdict{name: e.Name(), file: e.Name(), ok: true})
		}
	}
	for _, v := range s.doubtful(t) {
		s.judge(t, v)
	}
}

// doubtful are cases that are not what the release shows, most of them to be
// refused.
func (s shown) doubtful(t *testing.T) []verdict {
	t.Helper()
	const executable = "fleeting-plugin-linux-amd64"
	dir := t.TempDir()
	made := func(name string, content []byte) string {
		t.Helper()
		write(t, filepath.Join(dir, name), string(content))
		return filepath.Join(dir, name)
	}
	content, bundle := read(t, filepath.Join(s.dir, executable)), read(t, filepath.Join(s.dir, filesBundle))
	other := read(t, filepath.Join(s.dir, artifactBundle))
	lines := slices.Concat(bytes.TrimSpace(other), []byte("\n"), bytes.TrimSpace(bundle), []byte("\n"))
	return []verdict{
		{name: "renamed", file: made("tool", content), ok: true},
		{name: "changed", file: made("changed", append(slices.Clone(content), 0))},
		{name: "cut off", file: made("cut", content[:len(content)-1])},
		{name: "another identity", file: executable, subject: s.subject + "0"},
		{name: "another repository", file: executable, repository: "radome-io/other-plugin"},
		{name: "the artifact's bundle", file: executable, bundle: artifactBundle},
		{name: "an altered statement", file: executable, bundle: made("altered.json", alter(t, bundle, `"payload":"`))},
		{name: "an altered signature", file: executable, bundle: made("forged.json", alter(t, bundle, `"sig":"ME`))},
		{name: "half a bundle", file: executable, bundle: made("half.json", bundle[:len(bundle)/2])},
		{name: "no bundle", file: executable, bundle: made("empty.jsonl", nil)},
		{name: "two bundles", file: executable, bundle: made("two.jsonl", lines), ok: true},
		{name: "two bundles, one half", file: executable, bundle: made("spoilt.jsonl", lines[:len(lines)-10])},
	}
}

// alter changes one character behind a text in a bundle.
func alter(t *testing.T, bundle []byte, after string) []byte {
	t.Helper()
	at := bytes.Index(bundle, []byte(after))
	if at < 0 {
		t.Fatalf("no %s in the bundle", after)
	}
	altered := slices.Clone(bundle)
	at += len(after) + 20
	if altered[at] == 'A' {
		altered[at] = 'B'
	} else {
		altered[at] = 'A'
	}
	return altered
}

// judge asks everybody.
func (s shown) judge(t *testing.T, v verdict) {
	t.Helper()
	within := func(name, otherwise string) string {
		if name == "" {
			name = otherwise
		}
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(s.dir, name)
	}
	file, bundle := within(v.file, ""), within(v.bundle, filesBundle)
	if v.subject == "" {
		v.subject = s.subject
	}
	if v.repository == "" {
		v.repository = s.repository
	}
	says := func(who string, err error) {
		t.Helper()
		if (err == nil) != v.ok {
			t.Errorf("%s: %s says %v; want accepted = %v", v.name, who, err, v.ok)
			return
		}
		t.Logf("%s: %s: accepted = %v", v.name, who, v.ok)
	}
	says("verify-files", s.ours(t, v, file, bundle))
	_, err := s.lab.GH(t.Context(), "attestation", "verify", file, "--bundle", bundle, "--custom-trusted-root", s.roots,
		"--repo", v.repository, "--cert-identity", v.subject, "--cert-oidc-issuer", siglab.Issuer)
	says("gh", err)
	if v.repository != s.repository || strings.HasSuffix(bundle, ".jsonl") {
		return // cosign knows neither
	}
	for _, major := range []int{2, 3} {
		args := []string{
			"verify-blob-attestation", file, "--bundle", bundle, "--type", "slsaprovenance1", "--trusted-root", trustedRoot(s.lab),
			"--certificate-identity", v.subject, "--certificate-oidc-issuer", siglab.Issuer, "--insecure-ignore-sct",
		}
		_, err := s.lab.Cosign(t.Context(), major, args...)
		says(fmt.Sprintf("cosign %d", major), err)
	}
}

// ours asks our own tool. A refusal is exit code 3.
func (s shown) ours(t *testing.T, v verdict, file, bundle string) error {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.toml")
	write(t, policy, fmt.Sprintf(`version = 1
[[rule]]
scope = "registry.example.com/**"
  [[rule.identity]]
  issuer = %q
  subject = %q
  source-repository = "https://github.com/%s"
  trusted-root = %q
  insecure-no-sct = true
`, siglab.Issuer, v.subject, v.repository, trustedRoot(s.lab)))
	cmd := exec.CommandContext(t.Context(), s.tool, "verify-files", file, "--bundle", bundle, "--policy", policy, "--as", "registry.example.com/plugin")
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("%s: exit code %d, want 3\n%s", v.name, cmd.ProcessState.ExitCode(), out)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// ghArtifact asks gh about what is in the registry: with the bundles there, and
// with the one that the release shows.
func ghArtifact(t *testing.T, lab *siglab.Lab, checkout, subject, reference, image string) {
	t.Helper()
	roots, err := lab.TrustedRootLines(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(checkout, "build", "dist", "bin")
	for _, c := range []struct {
		name, reference, subject string
		from                     []string
		ok                       bool
	}{
		{"artifact, by the registry's bundles", reference, subject, []string{"--bundle-from-oci"}, true},
		{"artifact, by the bundle shown", reference, subject, []string{"--bundle", filepath.Join(dir, artifactBundle)}, true},
		{"image, by the registry's bundles", image, subject, []string{"--bundle-from-oci"}, true},
		{"artifact, by another identity", reference, subject + "4", []string{"--bundle-from-oci"}, false},
		{"artifact, by the files' bundle", reference, subject, []string{"--bundle", filepath.Join(dir, filesBundle)}, false},
		{"image, by the artifact's bundle", image, subject, []string{"--bundle", filepath.Join(dir, artifactBundle)}, false},
	} {
		out, err := lab.GH(t.Context(), append([]string{
			"attestation", "verify", "oci://" + c.reference, "--custom-trusted-root", roots,
			"--repo", ourRepository, "--cert-identity", c.subject, "--cert-oidc-issuer", siglab.Issuer,
		}, c.from...)...)
		if (err == nil) != c.ok {
			t.Errorf("%s: gh says %v\n%s; want accepted = %v", c.name, err, out, c.ok)
		}
		t.Logf("%s: gh: accepted = %v\n%s", c.name, err == nil, out)
	}
}
