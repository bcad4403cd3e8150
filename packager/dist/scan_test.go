package dist_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// problems returns every fault of an error.
func problems(err error) []*dist.InputError {
	if e, ok := err.(*dist.InputError); ok { //nolint:errorlint // each of the tree is looked at
		return []*dist.InputError{e}
	}
	var all []*dist.InputError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, child := range joined.Unwrap() {
			all = append(all, problems(child)...)
		}
	} else if inner := errors.Unwrap(err); inner != nil {
		all = problems(inner)
	}
	return all
}

// badInput is a folder that cannot be published, and what is said of it.
type badInput struct {
	name            string
	make            func(t *testing.T, dir string)
	path            string
	problem, remedy string
}

func amd64(t *testing.T, dir string) {
	t.Helper()
	sampleplugin.Copy(t, sampleplugin.Build(t, "linux/amd64", "1.0.0"), filepath.Join(dir, "linux/amd64/plugin"), 0o755)
}

// TestBadInput is INTEROP C2b (setuid bits), C2c (links), C12 (nothing to
// publish, linux/arm) and C13 (sub-folders), and all else that cannot be
// published.
func TestBadInput(t *testing.T) {
	t.Parallel()
	tests := []badInput{
		{"empty", func(*testing.T, string) {}, "", "holds no plugin", "build executables"},
		{"not there", func(t *testing.T, dir string) { t.Helper(); _ = os.Remove(dir) }, "", "cannot be read", "name the folder"},
		{
			"platform folder empty", func(t *testing.T, dir string) { t.Helper(); mkdir(t, dir, "linux/amd64") },
			"linux/amd64", "has no file plugin", "build the executable to",
		},
		{
			"executable has another name", func(t *testing.T, dir string) {
				t.Helper()
				sampleplugin.Copy(t, sampleplugin.Build(t, "linux/amd64", "1.0.0"), filepath.Join(dir, "linux/amd64/fleeting-plugin-x"), 0o755)
			}, "linux/amd64", "has no file plugin", "rename",
		},
		{"empty file", func(t *testing.T, dir string) {
			t.Helper()
			sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/plugin"), nil, 0o755)
		}, "linux/amd64/plugin", "is empty", "build it again"},
		{"script", func(t *testing.T, dir string) {
			t.Helper()
			sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/plugin"), []byte("#!/bin/sh\n"), 0o755)
		}, "linux/amd64/plugin", "it is a script", "GOOS=linux GOARCH=amd64"},
		{"other architecture", func(t *testing.T, dir string) {
			t.Helper()
			sampleplugin.Copy(t, sampleplugin.Build(t, "linux/arm64", "1.0.0"), filepath.Join(dir, "linux/amd64/plugin"), 0o755)
		}, "linux/amd64/plugin", "is an executable for linux/arm64, but would be published for linux/amd64", "GOARCH=amd64"},
		{"other system", func(t *testing.T, dir string) {
			t.Helper()
			sampleplugin.Copy(t, sampleplugin.Build(t, "windows/amd64", "1.0.0"), filepath.Join(dir, "linux/amd64/plugin"), 0o755)
		}, "linux/amd64/plugin", "it is one for windows/amd64 (PE)", "GOOS=linux"},
		{"freebsd in linux", func(t *testing.T, dir string) {
			t.Helper()
			sampleplugin.Copy(t, sampleplugin.Build(t, "freebsd/amd64", "1.0.0"), filepath.Join(dir, "linux/amd64/plugin"), 0o755)
		}, "linux/amd64/plugin", "is an executable for freebsd/amd64", "GOOS=linux"},
		{"linux in darwin", func(t *testing.T, dir string) {
			t.Helper()
			sampleplugin.Copy(t, sampleplugin.Build(t, "linux/arm64", "1.0.0"), filepath.Join(dir, "darwin/arm64/plugin"), 0o755)
		}, "darwin/arm64/plugin", "it is one for linux/arm64 (ELF)", "GOOS=darwin"},
		{"newer arm", func(t *testing.T, dir string) {
			t.Helper()
			sampleplugin.Copy(t, sampleplugin.Build(t, "linux/armv7", "1.0.0"), filepath.Join(dir, "linux/armv6/plugin"), 0o755)
		}, "linux/armv6/plugin", "was built with GOARM=7", "GOARM=6"},
		{"plain arm", func(t *testing.T, dir string) {
			t.Helper()
			sampleplugin.Copy(t, sampleplugin.Build(t, "linux/armv7", "1.0.0"), filepath.Join(dir, "linux/arm/plugin"), 0o755)
		}, "linux/arm", "does not say which version of ARM", "rename the folder to linux/armv7 (the executable was built with GOARM=7)"},
		{
			"amd64 level", func(t *testing.T, dir string) { t.Helper(); mkdir(t, dir, "linux/amd64v3") },
			"linux/amd64v3", "amd64 level", "GOAMD64=v1",
		},
		{
			"unknown architecture", func(t *testing.T, dir string) { t.Helper(); mkdir(t, dir, "linux/sparc64") },
			"linux/sparc64", "is not a platform", "architectures of linux are 386, amd64",
		},
		{
			"other spelling", func(t *testing.T, dir string) { t.Helper(); mkdir(t, dir, "linux/x86_64") },
			"linux/x86_64", "is not a platform", "rename the folder to linux/amd64",
		},
		{
			"unknown system", func(t *testing.T, dir string) { t.Helper(); mkdir(t, dir, "plan9/amd64") },
			"plan9", "is not the name of an operating system", "darwin, freebsd, linux, windows, zos",
		},
		{"file instead of folder", func(t *testing.T, dir string) {
			t.Helper()
			sampleplugin.Write(t, filepath.Join(dir, "linux/plugin"), nil, 0o755)
		}, "linux/plugin", "is not a folder", "linux/amd64/plugin"},
		{"sub-folder", func(t *testing.T, dir string) {
			t.Helper()
			amd64(t, dir)
			mkdir(t, dir, "linux/amd64/lib")
		}, "linux/amd64/lib", "is a folder", "beside the executable"},
	}
	for _, tt := range append(tests, unixInput()...) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "dist")
			mkdir(t, dir, "")
			tt.make(t, dir)
			_, err := dist.Scan(t.Context(), dir, dist.Options{})
			if !errors.Is(err, dist.ErrInput) {
				t.Fatalf("error = %v, want ErrInput", err)
			}
			want := filepath.Join(dir, tt.path)
			found := problems(err)
			if !slices.ContainsFunc(found, func(e *dist.InputError) bool {
				return e.Path == want && strings.Contains(e.Problem, tt.problem) && strings.Contains(filepath.ToSlash(e.Remedy), tt.remedy)
			}) {
				for _, e := range found {
					t.Errorf("path %s\nproblem %s\nremedy %s", e.Path, e.Problem, e.Remedy)
				}
			}
		})
	}
}

func mkdir(t testing.TB, dir, sub string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
		t.Fatal(err)
	}
}

func chmod(t testing.TB, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestEveryFaultIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/plugins"), []byte("x"), 0o755)
	mkdir(t, dir, "linux/arm")
	mkdir(t, dir, "solaris/amd64")
	_, err := dist.Scan(t.Context(), dir, dist.Options{})
	if n := len(problems(err)); n != 3 {
		t.Errorf("%d faults reported, want 3: %v", n, err)
	}
}

func TestScanIgnoresFilesBesideTheFolders(t *testing.T) {
	t.Parallel()
	dir := sampleplugin.Dist(t, "1.0.0", "linux/amd64")
	sampleplugin.Write(t, filepath.Join(dir, "SHA256SUMS"), []byte("x"), 0o644)
	if diff := cmp.Diff([]string{"linux/amd64"}, platforms(scan(t, dir))); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

// TestGoreleaser is INTEROP 1 and 2: the trees that publishers of plugins have,
// such as those of fleeting-plugin-hetzner and of sardinasystems, with several
// builds, levels of amd64 (amd64_v1), versions of ARM (arm_7).
// TestFlatFolder: executables that are named for their platform, as GitLab's
// Makefiles, gox and goreleaser write them.
func TestFlatFolder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files   map[string]string // names by platform
		want    []string
		warning string
		problem string
	}{
		"GitLab's Makefiles": {map[string]string{
			"plugin-linux-amd64": "linux/amd64", "plugin-linux-arm64": "linux/arm64", "plugin-windows-amd64.exe": "windows/amd64",
			"plugin-linux-amd64.sha256": "", "checksums.txt": "",
		}, []string{"linux/amd64", "linux/arm64", "windows/amd64"}, "", ""},
		"without a name":       {map[string]string{"linux-amd64": "linux/amd64"}, []string{"linux/amd64"}, "", ""},
		"underscores":          {map[string]string{"my_plugin_linux_x86_64": "linux/amd64", "my_plugin_linux_aarch64": "linux/arm64"}, []string{"linux/amd64", "linux/arm64"}, "", ""},
		"goreleaser's folders": {map[string]string{"plugin_linux_amd64_v1/fleeting-plugin-x": "linux/amd64", "plugin_linux_arm64_v8.0/fleeting-plugin-x": "linux/arm64"}, []string{"linux/amd64", "linux/arm64"}, "", ""},
		"a folder with plugin": {map[string]string{"plugin-linux-amd64/plugin": "linux/amd64", "plugin-linux-amd64/data": ""}, []string{"linux/amd64"}, "", ""},
		"ARM as it was built":  {map[string]string{"plugin-linux-arm": "linux/armv7"}, []string{"linux/arm/v7"}, "", ""},
		"ARM with a version":   {map[string]string{"plugin-linux-arm-7": "linux/armv7"}, []string{"linux/arm/v7"}, "", ""},
		"a name that is off":   {map[string]string{"plugin-linux-amd64": "linux/amd64", "plugin-linux-amr64": "linux/arm64"}, []string{"linux/amd64"}, "plugin-linux-amr64: left out", ""},
		"two plugins":          {map[string]string{"plugin-linux-amd64": "linux/amd64", "tool-linux-amd64": "linux/amd64"}, nil, "", "several names: plugin, tool"},
		"one twice":            {map[string]string{"plugin-linux-amd64": "linux/amd64", "plugin_linux_x86_64": "linux/amd64"}, nil, "", "is also in"},
		"an amd64 level":       {map[string]string{"plugin-linux-amd64_v3": "linux/amd64"}, nil, "", "amd64 level"},
		"another platform":     {map[string]string{"plugin-linux-arm64": "linux/amd64"}, nil, "", "would be published for linux/arm64"},
		"names of nothing":     {map[string]string{"plugin": "linux/amd64", "README.md": ""}, nil, "", "holds no plugin: there is only README.md, plugin"},
		"two in a folder":      {map[string]string{"linux-amd64/a": "linux/amd64", "linux-amd64/b": "linux/amd64"}, nil, "", "has 2 executables and no file plugin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, platform := range c.files {
				if platform == "" {
					sampleplugin.Write(t, filepath.Join(dir, file), []byte("x"), 0o644)
					continue
				}
				sampleplugin.Copy(t, sampleplugin.Build(t, platform, "1.0.0"), filepath.Join(dir, file), 0o755)
			}
			found, err := dist.Scan(t.Context(), dir, dist.Options{Executables: noCompanion})
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("got %v, want %q", err, c.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, platforms(found)); diff != "" {
				t.Errorf("platforms (-want +got):\n%s", diff)
			}
			warnings := fmt.Sprint(found.Warnings())
			if c.warning == "" && len(found.Warnings()) > 0 || !strings.Contains(warnings, c.warning) {
				t.Errorf("warnings %s, want %q", warnings, c.warning)
			}
		})
	}
}

func TestGoreleaser(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	found := filepath.Join(project, "dist")
	type artifact struct {
		Name, Path, Goos, Goarch, Goarm, Goamd64, Type string
		Extra                                          map[string]any
	}
	var all []artifact
	add := func(id, folder, platform string, a artifact) {
		a.Path, a.Type, a.Extra = filepath.Join("dist", folder, "fleeting-plugin-x"), "Binary", map[string]any{"ID": id}
		sampleplugin.Copy(t, sampleplugin.Build(t, platform, "1.0.0"), filepath.Join(project, a.Path), 0o755)
		all = append(all, a)
	}
	add("plugin", "x_linux_amd64_v1", "linux/amd64", artifact{Goos: "linux", Goarch: "amd64", Goamd64: "v1"})
	add("plugin", "x_linux_amd64_v3", "linux/amd64", artifact{Goos: "linux", Goarch: "amd64", Goamd64: "v3"})
	add("plugin", "x_linux_arm_7", "linux/armv7", artifact{Goos: "linux", Goarch: "arm", Goarm: "7"})
	add("plugin", "x_windows_amd64_v1", "windows/amd64", artifact{Goos: "windows", Goarch: "amd64", Goamd64: "v1"})
	add("tool", "tool_linux_amd64_v1", "linux/amd64", artifact{Goos: "linux", Goarch: "amd64", Goamd64: "v1"})
	all = append(all, artifact{Name: "checksums.txt", Path: "dist/checksums.txt", Type: "Checksum"})
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	// Goreleaser writes lower-case names.
	lower := string(raw)
	for _, name := range []string{"Name", "Path", "Goos", "Goarch", "Goarm", "Goamd64", "Type", "Extra"} {
		lower = strings.ReplaceAll(lower, `"`+name+`":`, `"`+strings.ToLower(name)+`":`)
	}
	sampleplugin.Write(t, filepath.Join(found, "artifacts.json"), []byte(lower), 0o644)

	_, err = dist.Scan(t.Context(), found, dist.Options{})
	if e, ok := errors.AsType[*dist.InputError](err); !ok || !strings.Contains(e.Problem, "plugin, tool") || !strings.Contains(e.Remedy, "--goreleaser-id") {
		t.Errorf("two builds: error = %v", err)
	}
	if _, err = dist.Scan(t.Context(), found, dist.Options{GoreleaserID: "nope"}); !errors.Is(err, dist.ErrInput) {
		t.Errorf("no such build: error = %v", err)
	}
	moved := filepath.Join(t.TempDir(), "artifacts-of-a-job")
	if err := os.CopyFS(moved, os.DirFS(found)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{found, moved} {
		found, err := dist.Scan(t.Context(), dir, dist.Options{GoreleaserID: "plugin"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"linux/amd64", "linux/arm/v7", "windows/amd64"}, platforms(found)); diff != "" {
			t.Errorf("platforms (-want +got):\n%s", diff)
		}
		if w := found.Warnings(); len(w) != 1 || !strings.Contains(w[0].String(), "v3") {
			t.Errorf("warnings: %v", w)
		}
	}
	sampleplugin.Write(t, filepath.Join(found, "artifacts.json"), []byte("{"), 0o644)
	if _, err = dist.Scan(t.Context(), found, dist.Options{}); !errors.Is(err, dist.ErrInput) {
		t.Errorf("broken file: error = %v", err)
	}
}

func TestExplicitPlatforms(t *testing.T) {
	t.Parallel()
	exe := sampleplugin.Build(t, "linux/amd64", "1.0.0")
	folder := sampleplugin.Dist(t, "1.0.0", "linux/arm64")
	found, err := dist.Scan(t.Context(), ".", dist.Options{Platforms: map[string]string{
		"linux/amd64": exe, "linux/arm64": filepath.Join(folder, "linux/arm64"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms(found)); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	for _, platforms := range []map[string]string{
		{"linux": exe},
		{"linux/arm": exe},
		{"linux/amd64": exe + "x"},
		{"linux/arm64": exe},
		{"linux/amd64": exe, "linux/x86_64": exe},
	} {
		if _, err := dist.Scan(t.Context(), ".", dist.Options{Platforms: platforms}); !errors.Is(err, dist.ErrInput) {
			t.Errorf("%v: error = %v", platforms, err)
		}
	}
}

func TestVersionThatTheExecutableTells(t *testing.T) {
	t.Parallel()
	for told, want := range map[string]string{"1.0.0": "", "v1.0.0": "", "dev": "warning", "1.0.1": "error"} {
		warnings, err := scan(t, sampleplugin.Dist(t, told, runtime.GOOS+"/"+runtime.GOARCH)).CompareVersion(t.Context(), parse(t, "1.0.0"))
		got := ""
		switch {
		case errors.Is(err, dist.ErrInput):
			got = "error"
		case err != nil:
			t.Fatal(err)
		case len(warnings) > 0:
			got = "warning"
		}
		if got != want {
			t.Errorf("executable says %s: got %q (%v, %v), want %q", told, got, warnings, err, want)
		}
	}
	warnings, err := scan(t, sampleplugin.Dist(t, "1.0.1", "darwin/arm64")).CompareVersion(t.Context(), parse(t, "1.0.0"))
	if err != nil || len(warnings) != 2 || !strings.Contains(warnings[1].String(), "1.0.0 is not in it") {
		t.Errorf("no executable for this machine: %v, %v", warnings, err)
	}
}

func TestFileThatChangesIsNoticed(t *testing.T) {
	t.Parallel()
	dir := sampleplugin.Dist(t, "1.0.0", "linux/amd64")
	found := scan(t, dir)
	sampleplugin.Copy(t, sampleplugin.Build(t, "linux/amd64", "9.9.9"), filepath.Join(dir, "linux/amd64/plugin"), 0o755)
	out := filepath.Join(t.TempDir(), "layout")
	_, err := packager.Pack(t.Context(), found, parse(t, "1.0.0"), out, packager.PackOptions{})
	if !errors.Is(err, dist.ErrInput) || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("error = %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(out))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
