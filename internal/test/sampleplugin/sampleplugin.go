// Package sampleplugin builds a small plugin for tests, and the folders that it is
// published from. Each executable is built once for all tests of a package.
package sampleplugin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// source is the plugin's main package.
const source = "github.com/radome-io/fleeting-plugin-openstack/packager/testdata/plugin"

// builds keeps the executables that were built, by platform and version.
var builds = struct { //nolint:gochecknoglobals // shared by the tests of a process
	sync.Mutex
	dir  string
	done map[string]string
}{done: map[string]string{}}

// kept names a folder in which executables are kept and looked for, for a system
// without a go command; see TestPrepare.
const kept = "SAMPLEPLUGIN_EXECUTABLES"

// Main runs the tests of a package, and removes what was built for them.
func Main(m *testing.M) int {
	code := m.Run()
	_ = os.RemoveAll(builds.dir)
	return code
}

// Build returns the executable for "os/arch[variant]" that reports a version.
func Build(tb testing.TB, platform, version string) string {
	tb.Helper()
	builds.Lock()
	defer builds.Unlock()
	key := platform + " " + version
	if path := builds.done[key]; path != "" {
		return path
	}
	dir := os.Getenv(kept)
	if dir == "" && builds.dir == "" {
		made, err := os.MkdirTemp("", "sampleplugin-") //nolint:usetesting // outlives the test that built it first
		if err != nil {
			tb.Fatal(err)
		}
		builds.dir = made
	}
	path, err := filepath.Abs(filepath.Join(cmp.Or(dir, builds.dir), strings.NewReplacer("/", "_", " ", "_").Replace(key)))
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		builds.done[key] = path
		return path
	}
	system, arch, _ := strings.Cut(platform, "/")
	arch, arm, _ := strings.Cut(arch, "v")
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", path, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOARM="+arm, "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("building for %s: %v\n%s", platform, err, out)
	}
	builds.done[key] = path
	return path
}

// Dist returns a folder with the plugin for the platforms.
func Dist(tb testing.TB, version string, platforms ...string) string {
	tb.Helper()
	dir := tb.TempDir()
	for _, p := range platforms {
		name := "plugin"
		if strings.HasPrefix(p, "windows/") {
			name = "plugin.exe"
		}
		Copy(tb, Build(tb, p, version), filepath.Join(dir, filepath.FromSlash(p), name), 0o755)
	}
	return dir
}

// Copy copies a file.
func Copy(tb testing.TB, from, to string, mode os.FileMode) {
	tb.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		tb.Fatal(err)
	}
	Write(tb, to, raw, mode)
}

// Write writes a file and the folders above it. The mode is set whatever the umask.
func Write(tb testing.TB, path string, content []byte, mode os.FileMode) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		tb.Fatal(err)
	}
}

// ELF returns a file that looks like an executable for linux/amd64 and is none. It is
// the same everywhere, which no build is.
func ELF() []byte {
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01\x00")
	b.Write(make([]byte, 8))
	for _, field := range []any{
		uint16(2), uint16(62), uint32(1), uint64(0x400000), uint64(0), uint64(0), uint32(0), uint16(64), uint16(0), uint16(0), uint16(0), uint16(0), uint16(0),
	} {
		_ = binary.Write(&b, binary.LittleEndian, field)
	}
	return append(b.Bytes(), bytes.Repeat([]byte("fleeting"), 1000)...)
}
