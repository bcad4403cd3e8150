package rebuild_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/rebuild"
)

// git runs git in a folder, as the publisher or an attacker did there.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	config := []string{
		"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "-c", "protocol.file.allow=always",
		"-c", "init.defaultBranch=main", "-c", "core.hooksPath=" + os.DevNull,
	}
	cmd := exec.CommandContext(t.Context(), "git", append(config, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// committed is a module in a repository, and an executable built there, which has
// the commit stamped into it.
func committed(t *testing.T, files map[string]string) (source, executable string) {
	t.Helper()
	source = module(t, files)
	git(t, source, "init", "-q")
	git(t, source, "add", ".")
	git(t, source, "commit", "-q", "-m", "first")
	return source, build(t, source, nil, "-trimpath", "-buildvcs=true")
}

func rebuilt(t *testing.T, source, executable string) (rebuild.Comparison, error) {
	t.Helper()
	return rebuild.Build(t.Context(), rebuild.Source{Dir: source}, rebuild.Target{OS: "linux", Arch: "amd64", Executable: executable},
		filepath.Join(t.TempDir(), "plugin"), rebuild.Options{})
}

// touchAll makes git look at the content of every file.
func touchAll(t *testing.T, dir string) {
	t.Helper()
	later := time.Now().Add(time.Hour)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.Contains(path, ".git") {
			err = os.Chtimes(path, later, later)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestHostileRepositories: whatever a source brings along with its files, nothing
// of it runs, and what is built is the same.
func TestHostileRepositories(t *testing.T) {
	t.Parallel()
	for name, arm := range map[string]func(t *testing.T, source, ran string){
		"a filter of its own": func(t *testing.T, source, ran string) {
			git(t, source, "config", "filter.x.clean", "echo clean >> "+ran+"; cat")
			git(t, source, "config", "filter.x.required", "true")
			writeFile(t, filepath.Join(source, ".git/info/attributes"), "* filter=x\n")
		},
		"a filter that works on several files": func(t *testing.T, source, ran string) {
			git(t, source, "config", "filter.x.process", "echo process >> "+ran)
			writeFile(t, filepath.Join(source, ".git/info/attributes"), "* filter=x\n")
		},
		"a filter by way of an included file": func(t *testing.T, source, ran string) {
			writeFile(t, filepath.Join(source, ".git/more"), "[filter \"x\"]\n\tclean = \"echo clean >> "+ran+"; cat\"\n[core]\n\tfsmonitor = \"echo monitor >> "+ran+"\"\n")
			git(t, source, "config", "include.path", "more")
			writeFile(t, filepath.Join(source, ".git/info/attributes"), "* filter=x\n")
		},
		"a monitor of files": func(t *testing.T, source, ran string) {
			git(t, source, "config", "core.fsmonitor", "echo monitor >> "+ran)
		},
		"a hook": func(t *testing.T, source, ran string) {
			for _, hook := range []string{"post-index-change", "post-checkout", "fsmonitor-watchman", "reference-transaction"} {
				writeFile(t, filepath.Join(source, ".git/hooks", hook), "#!/bin/sh\necho hook >> "+ran+"\n")
			}
		},
		"hooks elsewhere": func(t *testing.T, source, ran string) {
			for _, hook := range []string{"post-index-change", "post-checkout"} {
				writeFile(t, filepath.Join(source, ".git/elsewhere", hook), "#!/bin/sh\necho hook >> "+ran+"\n")
			}
			git(t, source, "config", "core.hooksPath", ".git/elsewhere")
		},
		"a remote that is asked for missing objects": func(t *testing.T, source, ran string) {
			git(t, source, "config", "core.repositoryFormatVersion", "1")
			git(t, source, "config", "extensions.partialClone", "x")
			git(t, source, "config", "remote.x.promisor", "true")
			git(t, source, "config", "remote.x.url", "ext::sh -c echo% ext% >>% "+ran)
			git(t, source, "config", "protocol.ext.allow", "always")
			git(t, source, "config", "remote.x.uploadpack", "echo uploadpack >> "+ran)
		},
		"a repository that it was no submodule of": func(t *testing.T, source, ran string) {
			child := filepath.Join(source, "testdata")
			git(t, filepath.Dir(child), "init", "-q", "testdata")
			writeFile(t, filepath.Join(child, ".gitattributes"), "* filter=x\n")
			writeFile(t, filepath.Join(child, "file"), "one")
			git(t, child, "add", ".")
			git(t, child, "commit", "-q", "-m", "x")
			git(t, child, "config", "filter.x.clean", "echo child >> "+ran+"; cat")
			writeFile(t, filepath.Join(source, ".git/info/exclude"), "testdata\n")
		},
		"a folder of git's that is elsewhere": func(t *testing.T, source, ran string) {
			elsewhere := filepath.Join(t.TempDir(), "git")
			if err := os.Rename(filepath.Join(source, ".git"), elsewhere); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(source, ".git"), "gitdir: "+elsewhere+"\n")
			git(t, source, "config", "core.fsmonitor", "echo monitor >> "+ran)
			git(t, source, "config", "core.worktree", source)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran := filepath.Join(t.TempDir(), "ran")
			source, executable := committed(t, map[string]string{"go.mod": gomod, "main.go": hello})
			arm(t, source, ran)
			touchAll(t, source)
			got, err := rebuilt(t, source, executable)
			if err != nil || !got.Same {
				t.Errorf("%+v, %v; want the same", got, err)
			}
			if content, err := os.ReadFile(ran); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("ran: %s (%v)", content, err)
			}
		})
	}
}

// TestHostileSubmodule is a submodule whose repository names a filter: git looks
// into it when it is asked about the repository around it.
func TestHostileSubmodule(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	other := module(t, map[string]string{"lib.go": "package lib\n", "go.mod": "module example.com/lib\n", ".gitattributes": "* filter=x\n"})
	git(t, other, "init", "-q")
	git(t, other, "add", ".")
	git(t, other, "commit", "-q", "-m", "lib")
	source := module(t, map[string]string{
		"go.mod":  gomod + "\nrequire example.com/lib v1.0.0\n\nreplace example.com/lib => ./lib\n",
		"main.go": "package main\n\nimport _ \"example.com/lib\"\n\nfunc main() {}\n",
	})
	git(t, source, "init", "-q")
	git(t, source, "submodule", "--quiet", "add", other, "lib")
	git(t, source, "add", ".")
	git(t, source, "commit", "-q", "-m", "first")
	executable := build(t, source, nil, "-trimpath", "-buildvcs=true")
	// As an archive packs it: with a repository of its own in the folder.
	git(t, filepath.Join(source, "lib"), "config", "filter.x.clean", "echo clean >> "+ran+"; cat")
	git(t, filepath.Join(source, "lib"), "config", "core.fsmonitor", "echo monitor >> "+ran)
	touchAll(t, source)
	got, err := rebuilt(t, source, executable)
	if err != nil || !got.Same {
		t.Errorf("%+v, %v; want the same", got, err)
	}
	if content, err := os.ReadFile(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ran: %s (%v)", content, err)
	}
}

// TestHostFilesStayOut: a source does not have files of this machine compiled into
// what is built, or shown in its errors.
func TestHostFilesStayOut(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	writeFile(t, filepath.Join(outside, "secret.h"), "secretword\n")
	writeFile(t, filepath.Join(outside, "lib/go.mod"), "module example.com/lib\n")
	writeFile(t, filepath.Join(outside, "lib/lib.go"), "package lib\n\nconst Secret = \"secretword\"\n")
	calling := "package main\n\nfunc f()\n\nfunc main() { f() }\n"
	text := "TEXT \u00b7f(SB),$0-0\n\tRET\n"
	for name, tt := range map[string]struct {
		files map[string]string
		link  [2]string // from, to
		want  string
	}{
		"by an absolute name":        {map[string]string{"main.go": calling, "f_amd64.s": fmt.Sprintf("#include %q\n", filepath.Join(outside, "secret.h")) + text}, [2]string{}, "includes"},
		"by a name that climbs":      {map[string]string{"main.go": calling, "f_amd64.s": "#include \"../../../../../../../../../../" + outside + "/secret.h\"\n" + text}, [2]string{}, "includes"},
		"with spaces":                {map[string]string{"main.go": calling, "f_amd64.s": "  #  include \"/etc/hostname\"\n" + text}, [2]string{}, "includes"},
		"with a comment in between":  {map[string]string{"main.go": calling, "f_amd64.s": "#/* x */include \"/etc/hostname\"\n" + text}, [2]string{}, "includes"},
		"by way of another file":     {map[string]string{"main.go": calling, "f_amd64.s": "#include \"x.h\"\n" + text, "x.h": "#include \"y.txt\"\n", "y.txt": "#include \"/etc/hostname\"\n"}, [2]string{}, "includes"},
		"in a macro":                 {map[string]string{"main.go": calling, "f_amd64.s": "#define X(a) \\\n#include \"/etc/hostname\"\n" + text}, [2]string{}, "includes"},
		"a header that is a link":    {map[string]string{"main.go": calling, "f_amd64.s": "#include \"x.h\"\n" + text}, [2]string{"x.h", filepath.Join(outside, "secret.h")}, ""},
		"a file of Go that is":       {map[string]string{"main.go": "package main\n\nfunc main() { println(secret) }\n"}, [2]string{"secret.go", filepath.Join(outside, "lib/lib.go")}, ""},
		"an embedded file that is":   {map[string]string{"main.go": "package main\n\nimport _ \"embed\"\n\n//go:embed x\nvar s string\n\nfunc main() { println(s) }\n"}, [2]string{"x", filepath.Join(outside, "secret.h")}, ""},
		"an embedded folder that is": {map[string]string{"main.go": "package main\n\nimport \"embed\"\n\n//go:embed x\nvar s embed.FS\n\nfunc main() { println(s) }\n"}, [2]string{"x", outside}, ""},
		"a module elsewhere":         {map[string]string{"go.mod": gomod + "\nrequire example.com/lib v1.0.0\n\nreplace example.com/lib => " + filepath.Join(outside, "lib") + "\n", "main.go": "package main\n\nimport \"example.com/lib\"\n\nfunc main() { println(lib.Secret) }\n"}, [2]string{}, "outside of the source"},
		"a module above":             {map[string]string{"go.mod": gomod + "\nrequire example.com/lib v1.0.0\n\nreplace example.com/lib => ../../../../../../../../../.." + outside + "/lib\n", "main.go": "package main\n\nimport \"example.com/lib\"\n\nfunc main() { println(lib.Secret) }\n"}, [2]string{}, "outside of the source"},
		"a workspace":                {map[string]string{"go.work": "go 1.25\n\nuse .\nuse " + filepath.Join(outside, "lib") + "\n", "main.go": "package main\n\nimport \"example.com/lib\"\n\nfunc main() { println(lib.Secret) }\n"}, [2]string{}, ""},
		"C, which is off":            {map[string]string{"main.go": "package main\n\n// #include \"/etc/hostname\"\nimport \"C\"\n\nfunc main() {}\n"}, [2]string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			honest := build(t, module(t, map[string]string{"go.mod": gomod, "main.go": hello}), nil, "-trimpath")
			files := map[string]string{"go.mod": gomod}
			maps.Copy(files, tt.files)
			source := module(t, files)
			if tt.link[0] != "" {
				if err := os.Symlink(tt.link[1], filepath.Join(source, tt.link[0])); err != nil {
					t.Fatal(err)
				}
			}
			out := filepath.Join(t.TempDir(), "plugin")
			_, err := rebuild.Build(t.Context(), rebuild.Source{Dir: source}, rebuild.Target{OS: "linux", Arch: "amd64", Executable: honest}, out, rebuild.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v; want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secretword") {
				t.Errorf("the error has what a file of this machine says: %v", err)
			}
			if content, err := os.ReadFile(out); err == nil && strings.Contains(string(content), "secretword") {
				t.Error("a file of this machine was compiled in")
			}
		})
	}
}

// TestBuildsSeeNoSecrets: what is built gets what it needs of the environment, and
// no more, not even by a command of the caller's.
func TestBuildsSeeNoSecrets(t *testing.T) {
	for name, value := range map[string]string{
		"CI_JOB_TOKEN": "secretword", "COSIGN_PASSWORD": "secretword", "SIGSTORE_ID_TOKEN": "secretword", "OS_PASSWORD": "secretword",
		"DOCKER_AUTH_CONFIG": "secretword", "GOFLAGS": "-trimpath", "GIT_DIR": t.TempDir(), "GIT_CONFIG_COUNT": "1",
		"GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "echo secretword >&2",
	} {
		t.Setenv(name, value)
	}
	source := module(t, map[string]string{"go.mod": gomod, "main.go": hello})
	published := filepath.Join(source, "main.go")
	_, err := rebuild.Build(t.Context(), rebuild.Source{Dir: source, Version: "1.2.3"}, rebuild.Target{OS: "linux", Arch: "amd64", Executable: published},
		filepath.Join(t.TempDir(), "plugin"), rebuild.Options{Command: `env; git status; [ "$VERSION" = 1.2.3 ] && [ -n "$PATH" ] && [ -n "$HOME" ] && exit 1`})
	if err == nil || strings.Contains(err.Error(), "secretword") || !strings.Contains(err.Error(), "VERSION=1.2.3") {
		t.Errorf("the command saw: %v", err)
	}
}

// emptyObject is an object file for Windows without sections and symbols.
const emptyObject = "\x64\x86\x00\x00\x00\x00\x00\x00\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00"

// TestPrebuiltObjectsAreNamed: objects that lie in the source are linked in as they
// are, so that "the same" does not say what they were made of.
func TestPrebuiltObjectsAreNamed(t *testing.T) {
	t.Parallel()
	source := module(t, map[string]string{"go.mod": gomod, "main.go": hello, "x_windows_amd64.syso": emptyObject})
	executable := build(t, source, []string{"GOOS=windows"}, "-trimpath")
	got, err := rebuild.Build(t.Context(), rebuild.Source{Dir: source}, rebuild.Target{OS: "windows", Arch: "amd64", Executable: executable},
		filepath.Join(t.TempDir(), "plugin.exe"), rebuild.Options{})
	if err != nil || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "x_windows_amd64.syso") {
		t.Errorf("%+v, %v", got, err)
	}
}
