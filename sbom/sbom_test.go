package sbom_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// program builds testdata/program once and returns its path.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sbom-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "plugin")
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "./testdata/program")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// self describes a Go executable with dependencies.
func self(t *testing.T, opts sbom.Options) sbom.Executable {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	exe, err := sbom.ReadFile(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	exe.Platform = "linux/amd64"
	return exe
}

func info() sbom.Info {
	return sbom.Info{
		Name: "example.com/plugins/demo", Version: "1.2.3", License: "MIT",
		Created: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 3600)), Tool: "test", ToolVersion: "0.1",
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func document(t *testing.T, exes ...sbom.Executable) *sbom.Document {
	t.Helper()
	doc, err := sbom.New(info(), exes...)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestListsEveryModuleThatGoVersionLists(t *testing.T) {
	t.Parallel()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "version", "-m", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 4 && fields[0] == "dep" {
			want[fields[1]+"@"+fields[2]] = fields[3]
		}
	}
	if len(want) < 5 {
		t.Fatalf("go version -m lists %d modules: the test proves nothing", len(want))
	}
	exe := self(t, sbom.Options{})
	got := map[string]string{}
	for _, m := range exe.Modules {
		got[m.Path+"@"+m.Version] = m.Sum
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modules (-go version -m +sbom):\n%s", diff)
	}
	doc := document(t, exe)
	if n := len(doc.Modules()); n != len(want)+1 {
		t.Errorf("document has %d modules, want %d and the standard library", n, len(want))
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	if exe.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("digest %s", exe.SHA256)
	}
	if exe.GoVersion == "" || exe.Setting("GOOS") == "" || exe.Main.Path == "" {
		t.Errorf("toolchain, settings or main module missing: %q %v %v", exe.GoVersion, exe.Settings, exe.Main)
	}
}

func TestStable(t *testing.T) {
	t.Parallel()
	a := self(t, sbom.Options{})
	b := a
	b.Platform = "linux/arm64"
	for name, encode := range map[string]func(*sbom.Document) ([]byte, error){
		"spdx": (*sbom.Document).SPDX, "cyclonedx": (*sbom.Document).CycloneDX,
	} {
		first, err := encode(document(t, a, b))
		if err != nil {
			t.Fatal(err)
		}
		second, err := encode(document(t, b, a))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(first), string(second)); diff != "" {
			t.Errorf("%s depends on the order of the executables:\n%s", name, diff)
		}
		other, err := encode(document(t, a))
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"documentNamespace", "serialNumber"} {
			if x, y := decode(t, first)[field], decode(t, other)[field]; x != nil && x == y {
				t.Errorf("two different documents share the %s %v", field, x)
			}
		}
	}
}

func TestLicensesFromTheModuleCache(t *testing.T) {
	t.Parallel()
	cache := sbom.NewModuleCache(goEnv(t, "GOMODCACHE"))
	exe := self(t, sbom.Options{Licenses: cache})
	known := map[string]string{}
	for _, m := range exe.Modules {
		if m.License != "" {
			known[m.Path] = m.License
		}
	}
	for path, want := range map[string]string{
		"github.com/google/go-cmp": "BSD-3-Clause", "github.com/CycloneDX/cyclonedx-go": "Apache-2.0",
		"github.com/google/licensecheck": "BSD-3-Clause",
	} {
		if known[path] != want {
			t.Errorf("licence of %s = %q, want %q", path, known[path], want)
		}
	}
	// Its file leaves the choice, and another is about its documentation.
	const choice = "github.com/spdx/tools-golang"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", choice).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := cache.License(choice, strings.TrimSpace(string(out))), "Apache-2.0 OR GPL-2.0"; got != want {
		t.Errorf("licence of %s = %q, want %q", choice, got, want)
	}
	empty := sbom.NewModuleCache(filepath.Join(t.TempDir(), "missing"))
	if got := empty.License("github.com/google/go-cmp", "v0.7.0"); got != "" {
		t.Errorf("a missing cache knows %q", got)
	}
}

func TestUnrecognisedLicenseIsUnknown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mod := filepath.Join(dir, "example.com", "!upper@v1.0.0")
	if err := os.MkdirAll(mod, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mod, "LICENSE"), []byte("You may use this on Tuesdays.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"example.com/Upper", "example.com/none", "../../etc", ""} {
		if got := sbom.NewModuleCache(dir).License(path, "v1.0.0"); got != "" {
			t.Errorf("License(%q) = %q, want unknown", path, got)
		}
	}
}

func TestPURL(t *testing.T) {
	t.Parallel()
	tests := []struct{ path, version, want string }{
		{"golang.org/x/mod", "v0.1.0", "pkg:golang/golang.org/x/mod@v0.1.0"},
		{"github.com/CycloneDX/cyclonedx-go", "v0.9.2", "pkg:golang/github.com/cyclonedx/cyclonedx-go@v0.9.2"},
		{"github.com/docker/cli", "v29.0.0+incompatible", "pkg:golang/github.com/docker/cli@v29.0.0%2Bincompatible"},
		{"example.com/a b", "", "pkg:golang/example.com/a%20b"},
	}
	for _, tt := range tests {
		if got := (sbom.Module{Path: tt.path, Version: tt.version}).PURL(); got != tt.want {
			t.Errorf("PURL(%s, %s) = %s, want %s", tt.path, tt.version, got, tt.want)
		}
	}
}

func TestWithoutBuildInfo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := sbom.ReadFile(path, sbom.Options{})
	if !errors.Is(err, sbom.ErrNoBuildInfo) {
		t.Fatalf("error = %v, want ErrNoBuildInfo", err)
	}
	if exe.Name != "plugin" || len(exe.SHA256) != 64 {
		t.Errorf("name and digest are not filled in: %+v", exe)
	}
	if _, err := sbom.ReadFile(path+"x", sbom.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error = %v, want not exist", err)
	}
}

func TestNewRefusesGaps(t *testing.T) {
	t.Parallel()
	exe := sbom.Executable{Name: "plugin"}
	for name, change := range map[string]func(*sbom.Info){
		"a name":               func(i *sbom.Info) { i.Name = "" },
		"a version":            func(i *sbom.Info) { i.Version = "" },
		"a creation time":      func(i *sbom.Info) { i.Created = time.Time{} },
		"the name of the tool": func(i *sbom.Info) { i.Tool = "" },
	} {
		i := info()
		change(&i)
		if _, err := sbom.New(i, exe); !errors.Is(err, sbom.ErrIncomplete) || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: error = %v", name, err)
		}
	}
	if _, err := sbom.New(info()); !errors.Is(err, sbom.ErrIncomplete) {
		t.Errorf("without executables: error = %v", err)
	}
}

func decode(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
