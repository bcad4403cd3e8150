//go:build unix

package docstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTemplateBuilds: what the template's Makefile builds has the version of the
// commit's tag; without one that is said. What was built before is built again,
// as it may be of another version.
func TestTemplateBuilds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "docs", "template"))); err != nil {
		t.Fatal(err)
	}
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return slices.Contains([]string{"MAKEFLAGS", "VERSION", "PLATFORMS", "GIT_CONFIG_COUNT"}, name)
		})
		cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", program, args, err, out)
		}
		return string(out)
	}
	run("git", "init", "-q")
	run("git", "add", ".")
	run("git", "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "-m", "first")
	run("git", "tag", "nightly")
	if err := os.MkdirAll(filepath.Join(dir, "dist", "linux", "amd64"), 0o755); err != nil {
		t.Fatal(err)
	}

	out := run("make", "-n", "dist")
	if strings.Count(out, "main.version=0.0.0-dev ") != 4 || !strings.Contains(out, "has no tag") {
		t.Errorf("without a tag, make dist runs:\n%s", out)
	}
	run("git", "tag", "v1.2.3")
	out = run("make", "-n", "dist")
	if strings.Count(out, "main.version=1.2.3 ") != 4 || strings.Contains(out, "has no tag") {
		t.Errorf("with a tag, make dist runs:\n%s", out)
	}
	if out := run("make", "-s", "ldflags"); !strings.HasPrefix(out, "-s -w -X main.version=1.2.3 -X main.revision=") {
		t.Errorf("make ldflags prints %q", out)
	}
}
