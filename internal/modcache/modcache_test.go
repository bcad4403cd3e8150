package modcache_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/modcache"
)

func names(texts []modcache.Text) (all, licenses []string) {
	for _, text := range texts {
		all = append(all, text.Name)
		if text.License {
			licenses = append(licenses, text.Name)
		}
	}
	return all, licenses
}

func TestTexts(t *testing.T) {
	t.Parallel()
	module := fstest.MapFS{}
	for _, name := range []string{
		"LICENSE", "NOTICE.txt", "PATENTS", "AUTHORS", "COPYING.LESSER", "LICENSE-MIT", "LICENSE.docs", "Licence.md", "UNLICENSE", "third_party_licenses.txt",
		"LICENSES/Apache-2.0.txt", "internal/copied/LICENSE.txt", "internal/copied/NOTICE",
		// Neither of these is a text.
		"license.go", "license_test.go", "licenses.json", "README.md", "notice.yaml", "licensing", "main.go",
		// Nothing of these is built.
		"testdata/LICENSE", ".github/LICENSE", "_example/LICENSE", "web/node_modules/x/LICENSE",
	} {
		module[name] = &fstest.MapFile{Data: []byte("text of " + name)}
	}
	texts, err := modcache.Texts(module)
	if err != nil {
		t.Fatal(err)
	}
	all, licenses := names(texts)
	want := []string{
		"AUTHORS", "COPYING.LESSER", "LICENSE", "LICENSE-MIT", "LICENSE.docs", "Licence.md", "NOTICE.txt", "PATENTS", "UNLICENSE", "third_party_licenses.txt",
		"LICENSES/Apache-2.0.txt", "internal/copied/LICENSE.txt", "internal/copied/NOTICE",
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	want = []string{"COPYING.LESSER", "LICENSE", "LICENSE-MIT", "Licence.md", "UNLICENSE", "LICENSES/Apache-2.0.txt"}
	if diff := cmp.Diff(want, licenses); diff != "" {
		t.Errorf("licences (-want +got):\n%s", diff)
	}
	if texts, err = modcache.Licenses(module); err != nil {
		t.Fatal(err)
	}
	if all, _ = names(texts); len(all) != len(want) {
		t.Errorf("Licenses = %v, want %v", all, want)
	}
	if texts, err = modcache.RootTexts(module); err != nil || len(texts) != 10 {
		t.Errorf("RootTexts = %d texts, %v, want 10", len(texts), err)
	}
}

// TestTextsBounds: a text that is too long is an error, as nothing may be left out.
func TestTextsBounds(t *testing.T) {
	t.Parallel()
	_, err := modcache.Texts(fstest.MapFS{"a/LICENSE": {Data: []byte(strings.Repeat("x", 1<<20+1))}})
	if !errors.Is(err, modcache.ErrTooMuch) || !strings.Contains(err.Error(), "a/LICENSE has 1048577 bytes") {
		t.Errorf("error = %v, want ErrTooMuch that names the file", err)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	dir := filepath.Join(cache, "example.com", "!acme", "x@v1.0.0-!r!c1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := modcache.Open(cache, "example.com/Acme/x", "v1.0.0-RC1")
	if err != nil {
		t.Fatal(err)
	}
	_ = root.Close()
	if _, err := modcache.Open(cache, "example.com/Acme/x", "v1.0.1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a version that is not there: %v", err)
	}
	for _, bad := range []string{"../x", "example.com/../x", "/etc", "example.com/x@v1", ""} {
		if _, err := modcache.Open(cache, bad, "v1.0.0"); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v, want it refused as a path", bad, err)
		}
	}
}

// TestAsk: the go command's own settings count, and no project's go.mod.
func TestAsk(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	settings := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(settings, []byte("GOMODCACHE="+cache+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	places, err := modcache.Ask(t.Context(), func(name string) (string, bool) {
		switch name {
		case "GOENV":
			return settings, true
		case "GOMODCACHE", "GOPATH":
			return "", false
		}
		return os.LookupEnv(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	if places.ModuleCache != cache || places.GoRoot == "" {
		t.Errorf("places = %+v, want the module cache %s", places, cache)
	}
}
