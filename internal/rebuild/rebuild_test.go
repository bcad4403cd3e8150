package rebuild_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/rebuild"
)

const (
	hello = "package main\n\nvar version string\n\nfunc main() { println(\"hello\", version) }\n"
	gomod = "module example.com/plugin\n\ngo 1.25\n"
)

// module writes a module and returns its folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// build builds as a publisher does.
func build(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "plugin")
	cmd := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"build", "-o", out}, args)...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(os.Environ(), []string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS=linux", "GOARCH=amd64"}, env)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	return out
}

func TestBuild(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		published, source map[string]string
		args              []string
		below, known      string
		// want is a part of the first difference, or "same".
		want string
	}{
		"the same": {
			published: map[string]string{"go.mod": gomod, "main.go": hello}, args: []string{"-trimpath"}, want: "same",
		},
		"linker flags from the publisher": {
			published: map[string]string{"go.mod": gomod, "main.go": hello},
			args:      []string{"-trimpath", "-ldflags", "-s -w -X main.version=1.2.3"}, known: "-s -w -X main.version=1.2.3", want: "same",
		},
		"linker flags in the executable, which also says its folder": {
			published: map[string]string{"go.mod": gomod, "main.go": hello},
			args:      []string{"-ldflags", "-s -w -X main.version=1.2.3"}, want: "without -trimpath",
		},
		"tags": {
			published: map[string]string{"go.mod": gomod, "main.go": hello, "other.go": "//go:build extra\n\npackage main\n\nfunc init() { println(1) }\n"},
			args:      []string{"-trimpath", "-tags", "extra"}, want: "same",
		},
		"a module below the top": {
			published: map[string]string{"x/plugin/go.mod": gomod, "x/plugin/cmd/it/main.go": hello},
			below:     "x/plugin", args: []string{"-trimpath", "./cmd/it"}, want: "same",
		},
		"another line": {
			published: map[string]string{"go.mod": gomod, "main.go": hello},
			source:    map[string]string{"go.mod": gomod, "main.go": strings.ReplaceAll(hello, "hello", "other")},
			args:      []string{"-trimpath", "-ldflags=-s -w"}, known: "-s -w", want: "section .",
		},
		"another language version": {
			published: map[string]string{"go.mod": gomod, "main.go": hello},
			source:    map[string]string{"go.mod": strings.ReplaceAll(gomod, "1.25", "1.22"), "main.go": hello},
			args:      []string{"-trimpath"}, want: "DefaultGODEBUG: published",
		},
		"another version of a module": {
			published: map[string]string{
				"go.mod": gomod + "\nrequire example.com/lib v1.0.0\n\nreplace example.com/lib => ./lib\n", "lib/go.mod": "module example.com/lib\n", "lib/lib.go": "package lib\n",
				"main.go": "package main\n\nimport _ \"example.com/lib\"\n\nfunc main() {}\n",
			},
			source: map[string]string{
				"go.mod": gomod + "\nrequire example.com/lib v1.1.0\n\nreplace example.com/lib => ./lib\n", "lib/go.mod": "module example.com/lib\n", "lib/lib.go": "package lib\n",
				"main.go": "package main\n\nimport _ \"example.com/lib\"\n\nfunc main() {}\n",
			},
			args: []string{"-trimpath"}, want: "module example.com/lib: published v1.0.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			published := build(t, filepath.Join(module(t, tt.published), tt.below), nil, tt.args...)
			source := tt.source
			if source == nil {
				source = tt.published
			}
			got, err := rebuild.Build(t.Context(), rebuild.Source{Dir: module(t, source)},
				rebuild.Target{OS: "linux", Arch: "amd64", Executable: published, LDFlags: tt.known},
				filepath.Join(t.TempDir(), "plugin"), rebuild.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "same" && (!got.Same || got.Published != got.Rebuilt || got.Differences != nil) {
				t.Errorf("not the same: %+v", got)
			}
			if tt.want != "same" && (got.Same || len(got.Differences) == 0 || !strings.Contains(got.Differences[0], tt.want)) {
				t.Errorf("got %+v; want a difference %q", got, tt.want)
			}
		})
	}
}

// TestRefused: what runs code of the source, or is not known not to, is refused
// before anything is built.
func TestRefused(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"go.mod": gomod, "main.go": hello})
	trimmed := build(t, dir, nil, "-trimpath")
	for name, tt := range map[string]struct {
		executable, known, want string
		opts                    rebuild.Options
	}{
		"no Go executable":              {executable: filepath.Join(dir, "main.go"), want: "no Go build information"},
		"a linker of the publisher's":   {executable: trimmed, known: "-linkmode=external -extld=/tmp/x", want: "linker flag -linkmode=external"},
		"a program as a value":          {executable: trimmed, known: "-s -extld /tmp/x", want: "linker flag -extld"},
		"not a flag":                    {executable: trimmed, known: "-s $(touch x)", want: "is not a flag"},
		"a file of a package":           {executable: build(t, dir, nil, "main.go"), want: "which package"},
		"compiler flags":                {executable: build(t, dir, nil, "-gcflags=-l"), want: "-gcflags=-l"},
		"linker flags in an executable": {executable: build(t, dir, nil, "-ldflags=-r=/x -s"), want: "linker flag -r=/x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := rebuild.ReadRecipe(tt.executable, tt.known, tt.opts)
			if !errors.Is(err, rebuild.ErrRecipe) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v; want %q", err, tt.want)
			}
		})
	}
}

func TestCgo(t *testing.T) {
	t.Parallel()
	cgo := build(t, module(t, map[string]string{"go.mod": gomod, "main.go": hello}), []string{"CGO_ENABLED=1"}, "-trimpath")
	if _, err := rebuild.ReadRecipe(cgo, "", rebuild.Options{}); !errors.Is(err, rebuild.ErrRecipe) || !strings.Contains(err.Error(), "cgo") {
		t.Errorf("got %v", err)
	}
	recipe, err := rebuild.ReadRecipe(cgo, "", rebuild.Options{AllowCgo: true, DownloadToolchain: true})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(recipe.Env, "CGO_ENABLED=1") || !strings.Contains(recipe.Command(), "GOTOOLCHAIN=go1.") {
		t.Errorf("command %s", recipe.Command())
	}
}

// TestSourceWithoutModule: a checkout of something else is no source.
func TestSourceWithoutModule(t *testing.T) {
	t.Parallel()
	published := build(t, module(t, map[string]string{"go.mod": gomod, "main.go": hello}), nil, "-trimpath")
	_, err := rebuild.Build(t.Context(), rebuild.Source{Dir: module(t, map[string]string{"go.mod": "module example.com/other\n"})},
		rebuild.Target{OS: "linux", Arch: "amd64", Executable: published}, filepath.Join(t.TempDir(), "plugin"), rebuild.Options{})
	if !errors.Is(err, rebuild.ErrOrigin) {
		t.Errorf("got %v", err)
	}
}

func TestReadProvenance(t *testing.T) {
	t.Parallel()
	const commit = "6843aa6a62e20bbb45da5df8d47d20cac594a903"
	for name, tt := range map[string]struct {
		predicate string
		want      rebuild.Origin
	}{
		"GitHub's": {
			`{"buildDefinition": {"resolvedDependencies": [{"uri": "git+https://github.com/o/r@refs/tags/v1.2.3", "digest": {"gitCommit": "` + commit + `"}}]}}`,
			rebuild.Origin{Repository: "https://github.com/o/r", Ref: "refs/tags/v1.2.3", Revision: commit},
		},
		"ours": {
			`{"buildDefinition": {"internalParameters": {"go": {"ldflags": "-s"}}, "resolvedDependencies": [{"uri": "https://example.com/an/image"},
			  {"uri": "git+https://gitlab.example.com/o/r", "digest": {"gitCommit": "` + commit + `"}}]}}`,
			rebuild.Origin{Repository: "https://gitlab.example.com/o/r", Revision: commit, LDFlags: "-s"},
		},
		"none": {`{}`, rebuild.Origin{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := rebuild.ReadProvenance([]byte(tt.predicate))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("origin (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := rebuild.ReadProvenance([]byte("[")); !errors.Is(err, rebuild.ErrOrigin) {
		t.Errorf("got %v", err)
	}
}

// TestCloneRefuses: git has transports that run programs or read local files,
// and names of commits that move.
func TestCloneRefuses(t *testing.T) {
	t.Parallel()
	const commit = "6843aa6a62e20bbb45da5df8d47d20cac594a903"
	for _, origin := range []rebuild.Origin{
		{},
		{Repository: "https://example.com/r"},
		{Repository: "https://example.com/r", Revision: "main"},
		{Repository: "https://example.com/r", Revision: "--upload-pack=x"},
		{Repository: "ext::sh -c touch% x", Revision: commit},
		{Repository: "file:///etc", Revision: commit},
		{Repository: "/etc", Revision: commit},
		{Repository: "--upload-pack=touch x", Revision: commit},
		{Repository: "ssh://-oProxyCommand=x/r", Revision: commit},
		{Repository: "http://example.com/r", Revision: commit},
	} {
		dir := filepath.Join(t.TempDir(), "source")
		if _, err := origin.Clone(t.Context(), dir); !errors.Is(err, rebuild.ErrOrigin) {
			t.Errorf("%+v: got %v", origin, err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%+v: something was fetched", origin)
		}
	}
}
