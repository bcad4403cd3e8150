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
// as it may be of another version, or goes if it is not built any more. Keys do
// not get into git.
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
			return slices.Contains([]string{"MAKEFLAGS", "VERSION", "REVISION", "PLATFORMS", "GIT_CONFIG_COUNT"}, name)
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

	// What the go command would build does not matter here, but what it is told.
	stand := filepath.Join(t.TempDir(), "go")
	if err := os.WriteFile(stand, []byte("#!/bin/sh\necho \"$GOARCH\" \"$@\"\n"+
		"while [ \"$1\" != -o ]; do shift; done\nmkdir -p \"${2%/*}\"; echo built >\"$2\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	build := func(args ...string) string {
		t.Helper()
		return run("env", append([]string{"PATH=" + filepath.Dir(stand) + ":" + os.Getenv("PATH"), "make", "-s", "-j2", "dist"}, args...)...)
	}
	out := build()
	if strings.Count(out, "main.version=0.0.0-dev ") != 4 || !strings.Contains(out, "has no tag") {
		t.Errorf("without a tag, make dist runs:\n%s", out)
	}
	run("git", "tag", "v1.2.3")
	out = build()
	if strings.Count(out, "main.version=1.2.3 ") != 4 || strings.Contains(out, "has no tag") {
		t.Errorf("with a tag, make dist runs:\n%s", out)
	}
	out = build("VERSION=v1.2.4", "PLATFORMS=linux/amd64,windows/arm64")
	for _, want := range []string{"main.version=1.2.4 ", "arm64 build", "-o dist/linux/amd64/plugin ", "-o dist/windows/arm64/plugin.exe "} {
		if !strings.Contains(out, want) {
			t.Errorf("for a given version and platforms, make dist does not run %q:\n%s", want, out)
		}
	}
	if out := run("make", "-s", "ldflags"); !strings.HasPrefix(out, "-s -w -X main.version=1.2.3 -X main.revision=") {
		t.Errorf("make ldflags prints %q", out)
	}
	run("git", "tag", "-d", "v1.2.3")
	run("git", "tag", "v1';touch${IFS}run;`touch${IFS}run`")
	if out := build(); strings.Count(out, "main.version=1';touch${IFS}run;`touch${IFS}run` ") != 4 {
		t.Errorf("with a tag that a shell would run, make dist runs:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "run")); err == nil {
		t.Error("the name of the tag was run")
	}
	build()
	build("PLATFORMS=linux/amd64 linux/arm64")
	left, err := filepath.Glob(filepath.Join(dir, "dist", "*", "*", "*"))
	want := []string{filepath.Join(dir, "dist/linux/amd64/plugin"), filepath.Join(dir, "dist/linux/arm64/plugin")}
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("after building for two platforms there are %v, %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cosign.key"), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := run("git", "status", "--porcelain"); out != "" {
		t.Errorf("git would take:\n%s", out)
	}
}
