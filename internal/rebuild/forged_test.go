package rebuild_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/rebuild"
)

// room is a build tag that a forger writes other things over.
const room = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" +
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

// forge writes another build information of the same length into a copy of an
// executable that was built with room as its tags: anybody can who signs it.
func forge(t *testing.T, executable string, replace ...string) string {
	t.Helper()
	content, err := os.ReadFile(executable)
	if err != nil {
		t.Fatal(err)
	}
	begin := bytes.Index(content, []byte("path\texample.com/plugin\n"))
	end := begin + bytes.LastIndex(content[begin:begin+1000], []byte("build\t"))
	said := string(content[begin:end])
	told := strings.NewReplacer(replace...).Replace(said)
	told = strings.Replace(told, room, strings.Repeat("x", len(room)-len(told)+len(said)), 1)
	if told == said || len(told) != len(said) {
		t.Fatalf("cannot write %q into %q", replace, said)
	}
	out := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(out, bytes.ReplaceAll(content, []byte(said), []byte(told)), 0o755); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestForged: build information is what a publisher wrote, not what a compiler
// did. Nothing of it, nor of the linker flags beside it, starts a program that
// lies in the source.
func TestForged(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	source := module(t, map[string]string{
		"go.mod": gomod, "main.go": hello, "evil.sh": "#!/bin/sh\necho \"$@\" >> " + ran + "\nexec \"$@\"\n",
	})
	evil := filepath.Join(source, "evil.sh")
	if err := os.Chmod(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	honest := build(t, source, nil, "-trimpath", "-tags="+room)
	trimmed := build(t, source, nil, "-trimpath")
	line := func(setting string) []string {
		return []string{"build\t-tags=", "build\t" + setting + "\nbuild\t-tags="}
	}
	path := func(path string) []string { return []string{"path\texample.com/plugin\n", "path\t" + path + "\n"} }
	for name, tt := range map[string]struct {
		executable, known string
	}{
		"a program around the tools":    {executable: forge(t, honest, line("GOFLAGS=-toolexec="+evil)...)},
		"a program for the cache":       {executable: forge(t, honest, line("GOCACHEPROG="+evil)...)},
		"a Go of the source":            {executable: forge(t, honest, line("GOROOT="+source)...)},
		"no checksums":                  {executable: forge(t, honest, line("GONOSUMDB=*")...)},
		"another workspace":             {executable: forge(t, honest, line("GOWORK="+source+"/go.work")...)},
		"a flag as the package":         {executable: forge(t, honest, path("-toolexec="+evil)...)},
		"a package of another module":   {executable: forge(t, honest, path("cmd/cat")...)},
		"all packages":                  {executable: forge(t, honest, path("example.com/plugin/...")...)},
		"cgo by a word that is not one": {executable: forge(t, honest, "CGO_ENABLED=0", "CGO_ENABLED=2")},
		"flags glued to a quoted value": {executable: trimmed, known: `-X 'main.version=1''-linkmode=external''-extld=` + evil + `'`},
		"a file glued to a value":       {executable: trimmed, known: `-X "main.version=1"-cpuprofile=` + ran},
		"a quote without its end":       {executable: trimmed, known: `-X 'main.version=1`},
		"a value that is missing":       {executable: trimmed, known: "-s -X"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := rebuild.Build(t.Context(), rebuild.Source{Dir: source},
				rebuild.Target{OS: "linux", Arch: "amd64", Executable: tt.executable, LDFlags: tt.known},
				filepath.Join(t.TempDir(), "plugin"), rebuild.Options{})
			if !errors.Is(err, rebuild.ErrRecipe) {
				t.Errorf("got %+v, %v; want a refusal", got, err)
			}
			if text, err := os.ReadFile(ran); err == nil {
				t.Errorf("it ran: %.200s", text)
			}
		})
	}
}

// TestOutputThere: what lies where the build writes is not taken for its result.
// The go command compares the build ID only, and leaves alone what has it.
func TestOutputThere(t *testing.T) {
	t.Parallel()
	source := module(t, map[string]string{"go.mod": gomod, "main.go": hello})
	honest, err := os.ReadFile(build(t, source, nil, "-trimpath"))
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.ReplaceAll(honest, []byte("hello"), []byte("HELLO"))
	published, output := filepath.Join(t.TempDir(), "plugin"), filepath.Join(t.TempDir(), "plugin")
	if err := errors.Join(os.WriteFile(published, changed, 0o755), os.WriteFile(output, changed, 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string]rebuild.Options{"go": {}, "command": {Command: "true"}} {
		got, err := rebuild.Build(t.Context(), rebuild.Source{Dir: source},
			rebuild.Target{OS: "linux", Arch: "amd64", Executable: published}, output, opts)
		if got.Same || (err == nil) != (name == "go") {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// TestModuleNoFile: a go.mod that is no file is not read. It could be a device
// without an end.
func TestModuleNoFile(t *testing.T) {
	t.Parallel()
	published := build(t, module(t, map[string]string{"go.mod": gomod, "main.go": hello}), nil, "-trimpath")
	source := module(t, map[string]string{"x/main.go": hello, "outside": gomod})
	if err := os.Symlink("../outside", filepath.Join(source, "x", "go.mod")); err != nil {
		t.Fatal(err)
	}
	_, err := rebuild.Build(t.Context(), rebuild.Source{Dir: source},
		rebuild.Target{OS: "linux", Arch: "amd64", Executable: published}, filepath.Join(t.TempDir(), "plugin"), rebuild.Options{})
	if !errors.Is(err, rebuild.ErrOrigin) {
		t.Errorf("got %v", err)
	}
}
