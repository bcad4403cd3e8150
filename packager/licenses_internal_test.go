package packager

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/notices"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// TestLicensesBesideExecutables: what the companion says of licences counts, and
// the module cache only for what it does not say.
func TestLicensesBesideExecutables(t *testing.T) {
	t.Parallel()
	places := t.TempDir()
	module := filepath.Join(places, "example.com", "a@v1.0.0")
	text := filepath.Join(t.TempDir(), notices.FileName)
	err := errors.Join(os.MkdirAll(module, 0o755), os.WriteFile(filepath.Join(module, "LICENSE"), []byte("text"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	exe := sbom.Executable{GoVersion: "go1.26.0", Modules: []sbom.Module{{Path: "example.com/a", Version: "v1.0.0", License: "MPL-2.0"}}}
	opts := notices.Options{Given: map[string][]byte{"std": []byte("Go's")}}
	opts.ModuleCache = places
	collected, err := notices.Collect(opts, exe)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(text, collected, 0o600); err != nil {
		t.Fatal(err)
	}
	cache := known{"example.com/a@v1.0.0": "MIT", "example.com/b@v1.0.0": "ISC"}
	alone, beside := inputOf(t), inputOf(t, text)
	for name, tt := range map[string]struct {
		in    dist.Input
		other sbom.Licenses
		want  []string
	}{
		"beside, with a cache": {beside, cache, []string{"MPL-2.0", "ISC"}},
		"beside":               {beside, nil, []string{"MPL-2.0", ""}},
		"a cache":              {alone, cache, []string{"MIT", "ISC"}},
	} {
		licenses, err := licensesOf(tt.in, tt.other)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{licenses.License("example.com/a", "v1.0.0"), licenses.License("example.com/b", "v1.0.0")}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if licenses, err := licensesOf(alone, nil); licenses != nil || err != nil {
		t.Errorf("nothing to ask: %v, %v", licenses, err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(beside.Executable().Path()), notices.FileName)); err != nil {
		t.Fatal(err)
	}
	if _, err := licensesOf(beside, nil); !errors.Is(err, dist.ErrInput) {
		t.Errorf("a file that is gone: %v", err)
	}
}

// inputOf is a plugin with companions.
func inputOf(t *testing.T, companions ...string) dist.Input {
	t.Helper()
	dir := t.TempDir()
	sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/plugin"), sampleplugin.ELF(), 0o755)
	for _, path := range companions {
		sampleplugin.Copy(t, path, filepath.Join(dir, "linux/amd64", filepath.Base(path)), 0o644)
	}
	found, err := dist.Scan(t.Context(), dir, dist.Options{Executables: []string{""}})
	if err != nil {
		t.Fatal(err)
	}
	return found.Inputs()[0]
}

type known map[string]string

func (k known) License(path, version string) string { return k[path+"@"+version] }

func TestUnknownLicensesAreReported(t *testing.T) {
	t.Parallel()
	executable := func(letters string) sbom.Executable {
		exe := sbom.Executable{Modules: []sbom.Module{{Path: "example.com/known", Version: "v1.0.0", License: "MIT"}}}
		for letter := range strings.SplitSeq(letters, "") {
			exe.Modules = append(exe.Modules, sbom.Module{Path: "example.com/" + letter, Version: "v1.0.0"})
		}
		return exe
	}
	for letters, want := range map[string][]Event{
		"":      nil,
		"ba":    {{Kind: EventUnlicensed, Subject: "example.com/a@v1.0.0, example.com/b@v1.0.0"}},
		"edcba": {{Kind: EventUnlicensed, Subject: "example.com/a@v1.0.0, example.com/b@v1.0.0, example.com/c@v1.0.0 and 2 more"}},
	} {
		var got []Event
		opts := PackOptions{Report: func(e Event) { got = append(got, e) }}
		opts.reportUnknown([]sbom.Executable{executable(letters), executable(letters)})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", letters, diff)
		}
	}
}
