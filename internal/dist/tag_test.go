package dist

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMakeVerifiesTheTag: `make release-tag` takes a tag that a maintainer's key
// signed, and no other.
func TestMakeVerifiesTheTag(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"Makefile", "release.mk"} {
		content, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	git := func(args ...string) {
		t.Helper()
		command("git", append([]string{
			"-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false", "-c", "gpg.format=ssh",
		}, args...)...)
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	for _, key := range []string{"maintainer", "stranger"} {
		command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", key)
		git("-c", "user.signingKey="+filepath.Join(dir, key+".pub"), "tag", "--sign", "-m", "signed", map[string]string{"maintainer": "v1.0.0", "stranger": "v1.0.1"}[key])
	}
	git("tag", "--annotate", "-m", "not signed", "v1.0.2")
	git("tag", "v1.0.3")
	public, err := os.ReadFile(filepath.Join(dir, "maintainer.pub"))
	if err != nil {
		t.Fatal(err)
	}
	signers := filepath.Join(dir, "signers")
	if err := os.WriteFile(signers, []byte("a@example.com namespaces=\"git\" "+string(public)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ what, version, signers, want string }{
		{"a maintainer's", "1.0.0", signers, ""},
		{"a stranger's", "1.0.1", signers, "No principal matched"},
		{"not signed", "1.0.2", signers, "no signature found"},
		{"not annotated", "1.0.3", signers, "is no annotated tag"},
		{"not there", "1.0.4", signers, "is no annotated tag"},
		{"no keys", "1.0.0", filepath.Join(dir, "nothing"), "has no key"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "make", "-s", "--no-print-directory", "release-tag", "VERSION="+tt.version, "RELEASE_SIGNERS="+tt.signers)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if (err == nil) != (tt.want == "") || !strings.Contains(string(out), tt.want) {
				t.Errorf("%v, want %q: %s", err, tt.want, out)
			}
		})
	}
}
