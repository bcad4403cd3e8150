package dist_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// TestGoreleaserListsNothingElsewhere: the list comes from another job, and
// must not have the publisher's own files published.
func TestGoreleaserListsNothingElsewhere(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	scanned := filepath.Join(root, "project", "dist")
	outside := filepath.Join(root, "outside")
	sampleplugin.Write(t, outside, sampleplugin.ELF(), 0o755)
	sampleplugin.Write(t, filepath.Join(scanned, "x"), sampleplugin.ELF(), 0o755)
	list := filepath.Join(scanned, "artifacts.json")
	for path, problem := range map[string]string{
		outside:                "is listed by goreleaser and is not in its folder",
		"../outside":           "is listed by goreleaser and is not in its folder",
		"dist/../../outside":   "is listed by goreleaser and is not in its folder",
		"dist/../../../../etc": "is listed by goreleaser and is not in its folder",
		"":                     "is listed by goreleaser and is not in its folder",
		"dist/nothing":         "is not there",
	} {
		sampleplugin.Write(t, list, []byte(`[{"path": `+strconv.Quote(path)+`, "goos": "linux", "goarch": "amd64", "type": "Binary"}]`), 0o644)
		_, err := dist.Scan(t.Context(), scanned, dist.Options{})
		if !errors.Is(err, dist.ErrInput) || !strings.Contains(err.Error(), problem) {
			t.Errorf("path %q: error = %v, want %q", path, err, problem)
		}
	}
	for name, content := range map[string]string{
		"null": "null", "object": "{}", "text": `"x"`, "numbers": "[1]", "followed by more": "[] []", "deep": strings.Repeat("[", 20000),
		"no end": `[{"path":`, "too long": "[" + strings.Repeat(" ", 17<<20) + "]",
	} {
		sampleplugin.Write(t, list, []byte(content), 0o644)
		if _, err := dist.Scan(t.Context(), scanned, dist.Options{}); !errors.Is(err, dist.ErrInput) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	notAFile(t, list)
	if _, err := dist.Scan(t.Context(), scanned, dist.Options{}); !errors.Is(err, dist.ErrInput) {
		t.Errorf("not a file: error = %v", err)
	}
}

// TestExecutableOfAnotherSystem changes single fields of an ELF header.
func TestExecutableOfAnotherSystem(t *testing.T) {
	t.Parallel()
	patched := func(at int, value byte) []byte {
		b := sampleplugin.ELF()
		b[at] = value
		return b
	}
	for name, content := range map[string][]byte{
		"netbsd": patched(7, 2), "solaris": patched(7, 6), "openbsd": patched(7, 12), "an unknown system": patched(7, 200),
		"32 bits": patched(4, 1), "big endian": patched(5, 2),
	} {
		dir := t.TempDir()
		sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/plugin"), content, 0o755)
		if _, err := dist.Scan(t.Context(), dir, dist.Options{}); !errors.Is(err, dist.ErrInput) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	// Android's header is that of Linux; the build information differs.
	dir := t.TempDir()
	sampleplugin.Copy(t, sampleplugin.Build(t, "android/arm64", "1.0.0"), filepath.Join(dir, "linux/arm64/plugin"), 0o755)
	_, err := dist.Scan(t.Context(), dir, dist.Options{})
	if !errors.Is(err, dist.ErrInput) || !strings.Contains(err.Error(), "android/arm64") {
		t.Errorf("android: error = %v", err)
	}
}

// TestDynamicExecutable is INTEROP 32: an executable that needs a loader is
// published with a warning that says where it will not start.
func TestDynamicExecutable(t *testing.T) {
	t.Parallel()
	content := sampleplugin.ELF()
	content[32], content[54], content[56] = 64, 56, 1       // one program header, behind the file's
	copy(content[64:], []byte{3, 0, 0, 0, 4, 0, 0, 0, 120}) // PT_INTERP, at 120
	copy(content[120:], "/lib64/ld-linux-x86-64.so.2\x00")  // its text
	content[64+32], content[64+40] = 28, 28                 // and size
	dir := t.TempDir()
	sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/plugin"), content, 0o755)
	warnings := scan(t, dir).Warnings()
	if len(warnings) == 0 || !strings.Contains(warnings[0].String(), "linked dynamically") || !strings.Contains(warnings[0].String(), "cannot run as a container") || !strings.Contains(warnings[0].String(), "CGO_ENABLED=0") {
		t.Errorf("warnings: %v", warnings)
	}
	sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/plugin"), sampleplugin.ELF(), 0o755)
	if text := fmt.Sprint(scan(t, dir).Warnings()); strings.Contains(text, "dynamically") {
		t.Errorf("static: %s", text)
	}
}

// TestCompanionNames refuses names that mean something else to those who unpack
// a layer.
func TestCompanionNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		platform, executable, name string
		ok                         bool
	}{
		{"linux/amd64", "plugin", ".wh.plugin", false},
		{"linux/amd64", "plugin", ".wh..wh..opq", false},
		{"linux/amd64", "plugin", "not\xffUTF-8", false},
		{"linux/amd64", "plugin", "new\nline", false},
		{"linux/amd64", "plugin", `a\b`, false},
		{"linux/amd64", "plugin", "a:b", false},
		{"linux/amd64", "plugin", "aux.txt", false},
		{"linux/amd64", "plugin", "ends.", false},
		{"linux/amd64", "plugin", "fleeting-plugin.receipt.json", false},
		{"linux/amd64", "plugin", "e\u0301", true},
		{"linux/amd64", "plugin", "ünïcode", true},
		{"linux/amd64", "plugin", strings.Repeat("n", 255), true},
		{"windows/amd64", "plugin.exe", "a:b", false},
		{"windows/amd64", "plugin.exe", "NUL.txt", false},
		{"windows/amd64", "plugin.exe", "com1", false},
		{"windows/amd64", "plugin.exe", "ends.", false},
		{"windows/amd64", "plugin.exe", "ends ", false},
		{"windows/amd64", "plugin.exe", "console", true},
	} {
		if runtime.GOOS == "windows" && artifact.FileNameProblem(tt.name) != "" {
			continue // its file systems have no such names
		}
		dir := sampleplugin.Dist(t, "1.0.0", tt.platform)
		sampleplugin.Write(t, filepath.Join(dir, tt.platform, tt.name), []byte("x"), 0o644)
		found, err := dist.Scan(t.Context(), dir, dist.Options{Executables: noCompanion})
		if tt.ok && err == nil {
			_, err = packager.Pack(t.Context(), found, parse(t, "1.0.0"), filepath.Join(t.TempDir(), "layout"), packager.PackOptions{})
		}
		if tt.ok && err != nil || !tt.ok && !errors.Is(err, dist.ErrInput) {
			t.Errorf("%s: %q: error = %v", tt.platform, tt.name, err)
		}
	}
}

// TestLinkedFolderIsNotLeftOut: a platform that is silently missing is noticed
// by its users only.
func TestLinkedFolderIsNotLeftOut(t *testing.T) {
	t.Parallel()
	for _, link := range []string{"linux", "linux/amd64"} {
		real, dir := sampleplugin.Dist(t, "1.0.0", "linux/amd64"), sampleplugin.Dist(t, "1.0.0", "darwin/arm64")
		mkdir(t, dir, filepath.Dir(link))
		if err := os.Symlink(filepath.Join(real, link), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		_, err := dist.Scan(t.Context(), dir, dist.Options{})
		if !errors.Is(err, dist.ErrInput) || !strings.Contains(err.Error(), "is a symbolic link") {
			t.Errorf("%s: error = %v", link, err)
		}
	}
}
