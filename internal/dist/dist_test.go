package dist

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// module writes a module with our two commands, tracked by git. The commands
// import nothing, so that building them is cheap.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const source = "package main\n\nvar version, revision string\n\nfunc main() { println(version, revision) }\n"
	write("go.mod", "module example.test/m\n\ngo 1.26.0\n")
	write("LICENSE", "our own licence\n")
	write("cmd/"+pluginName+"/main.go", source)
	write("cmd/"+toolName+"/main.go", source)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

func platforms(t *testing.T, list string) []artifact.Platform {
	t.Helper()
	parsed, err := ParsePlatforms(list)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestBuild(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	// What an earlier build made is of another version, and would be summed,
	// signed and packaged with this one's.
	for _, left := range []string{"bin/" + pluginName + "-linux-riscv64", "plugin/linux/riscv64/plugin", "plugin/linux/amd64/NOTES", "notices/left.txt"} {
		path := filepath.Join(out, left)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Build(t.Context(), Options{
		Source: module(t), Out: out, Version: "1.2.3", Revision: "abc",
		Platforms: platforms(t, "linux/amd64 windows/arm64"),
	})
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, 0, len(files))
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	want := []string{
		"bin/SHA256SUMS",
		"bin/THIRD_PARTY_NOTICES.txt",
		"bin/fleeting-plugin-linux-amd64",
		"bin/fleeting-plugin-openstack-linux-amd64",
		"bin/fleeting-plugin-openstack-windows-arm64.exe",
		"bin/fleeting-plugin-windows-arm64.exe",
		"notices/fleeting-plugin-linux-amd64.txt",
		"notices/fleeting-plugin-openstack-linux-amd64.txt",
		"notices/fleeting-plugin-openstack-windows-arm64.exe.txt",
		"notices/fleeting-plugin-windows-arm64.exe.txt",
		"plugin/linux/amd64/THIRD_PARTY_NOTICES.txt",
		"plugin/linux/amd64/plugin",
		"plugin/windows/arm64/THIRD_PARTY_NOTICES.txt",
		"plugin/windows/arm64/plugin.exe",
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	sums, err := os.ReadFile(filepath.Join(out, "bin", "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(sums), "\n"); got != 5 {
		t.Errorf("SHA256SUMS has %d lines, want 5:\n%s", got, sums)
	}
}

func TestBuildError(t *testing.T) {
	t.Parallel()
	_, err := Build(t.Context(), Options{
		Source: module(t), Out: t.TempDir(), Version: "1.2.3",
		Platforms: platforms(t, "linux/vax"),
	})
	if err == nil || !strings.Contains(err.Error(), "building for linux/vax") {
		t.Errorf("error = %v, want one that names linux/vax", err)
	}
}

func TestReproTellsAChangedLineApart(t *testing.T) {
	t.Parallel()
	opts := Options{
		Source: module(t), Version: "1.2.3", PluginOnly: true,
		Platforms: platforms(t, "linux/amd64"),
	}
	before, differ, err := Repro(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(differ) > 0 || len(before) == 0 {
		t.Fatalf("two builds of %d files differ in %v", len(before), differ)
	}

	main := filepath.Join(opts.Source, "cmd", pluginName, "main.go")
	const changed = "package main\n\nvar version, revision string\n\nfunc main() { println(revision, version) }\n"
	if err := os.WriteFile(main, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	opts.Out = t.TempDir()
	after, err := Build(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"bin/SHA256SUMS", "bin/fleeting-plugin-openstack-linux-amd64", "plugin/linux/amd64/plugin"}
	if diff := cmp.Diff(want, Diff(before, after)); diff != "" {
		t.Errorf("files that differ (-want +got):\n%s", diff)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	a := []File{{"a", "1"}, {"b", "1"}, {"c", "1"}}
	b := []File{{"a", "1"}, {"b", "2"}, {"d", "1"}}
	if diff := cmp.Diff([]string{"b", "c", "d"}, Diff(a, b)); diff != "" {
		t.Errorf("Diff (-want +got):\n%s", diff)
	}
	if got := Diff(a, a); got != nil {
		t.Errorf("Diff of the same = %v", got)
	}
}

func TestParsePlatforms(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want string
		err  string
	}{
		{"", releasePlatforms, ""},
		{"linux/amd64, linux/arm/v6", "linux/amd64 linux/arm/v6", ""},
		{"linux/x86_64 linux/armv7", "linux/amd64 linux/arm/v7", ""},
		{"linux", "", "not os/arch"},
		{"linux/", "", "invalid platform"},
		{"a/b/c/d", "", "not os/arch"},
		{"linux/arm", "", "goes with arm"},
		{"linux/arm/v8", "", "goes with arm"},
		{"linux/amd64/v7", "", "goes with arm"},
		{"linux/amd64/v3", "", "goes with arm"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			t.Parallel()
			got, err := ParsePlatforms(tt.in)
			if tt.err != "" {
				if !errors.Is(err, artifact.ErrPlatform) || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error = %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, p := range got {
				names = append(names, p.String())
			}
			if diff := cmp.Diff(tt.want, strings.Join(names, " ")); diff != "" {
				t.Errorf("platforms (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMakePrintsTheLinkerFlags: what `make ldflags` prints, and the provenance
// then says, is what Build builds with.
func TestMakePrintsTheLinkerFlags(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.2.3", "v1.2.3"} {
		if got, want := makeIn(t, "../..", "ldflags", "VERSION="+version, "REVISION=abc"), LDFlags("1.2.3", "abc"); got != want {
			t.Errorf("VERSION=%s: make ldflags prints %q, want %q", version, got, want)
		}
	}
}

// TestMakeTakesTheVersionOfTheTag: the tag of the commit names the version, with
// every make that runs a release. The workflow names the tag itself, as a commit
// may have several. A tag's name is never run.
func TestMakeTakesTheVersionOfTheTag(t *testing.T) {
	t.Parallel()
	repository := func(tag string) string {
		t.Helper()
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
		commands := [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "first"}}
		if tag != "" {
			commands = append(commands, []string{"-c", "tag.gpgsign=false", "tag", tag})
		}
		for _, args := range commands {
			cmd := exec.CommandContext(t.Context(), "git", args...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
		}
		return dir
	}
	tests := []struct {
		name, tag, given, want string
	}{
		{"a release", "v0.2.0", "", "0.2.0"},
		{"a prerelease", "v1.0.0-rc.1", "", "1.0.0-rc.1"},
		{"no tag", "", "", "0.0.0-dev"},
		{"another tag", "nightly", "", "0.0.0-dev"},
		{"given", "v0.2.0", "v0.3.0", "0.3.0"},
		{"given without v", "v0.2.0", "0.3.0", "0.3.0"},
		{"a tag that a shell would run", "v1$(touch${IFS}run)`touch${IFS}run`", "", "1$(touch${IFS}run)`touch${IFS}run`"},
		{"a tag that ends a quotation", `v1';touch${IFS}run;'";touch${IFS}run;"`, "", `1';touch${IFS}run;'";touch${IFS}run;"`},
		{"given, with a shell's words", "", "v1$(touch run)`touch run`$(shell touch run)", "1$(touch run)`touch run`$(shell touch run)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := repository(tt.tag)
			var env []string
			if tt.given != "" {
				env = []string{"VERSION=" + tt.given}
			}
			if got, _, _ := strings.Cut(makeWith(t, dir, env, "ldflags"), " -X main.revision="); got != "-s -w -X main.version="+tt.want {
				t.Errorf("make ldflags prints %q, want the version %q", got, tt.want)
			}
			// The references that a release has unless others are given.
			for _, want := range []string{"ghcr.io/radome-io/fleeting-plugin-openstack:" + tt.want, "ghcr.io/radome-io/fleeting-plugin:" + tt.want} {
				if got := makeWith(t, dir, env, "release-references"); !slices.Contains(strings.Split(got, "\n"), want) {
					t.Errorf("make release-references prints %q, want %q", got, want)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "run")); err == nil {
				t.Error("the name of the tag was run")
			}
		})
	}
}

func makeIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return makeWith(t, dir, nil, args...)
}

// makeWith runs make without what `make test` hands down, and with env.
func makeWith(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"-s", "--no-print-directory"}, args...)...)
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"MAKEFLAGS", "VERSION", "REVISION"}, name)
	})
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}
