package dist_test

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/dist"
	"github.com/radome-io/fleeting-plugin-openstack/internal/notices"
)

// archived writes archives of executables that say which they are.
func archived(t *testing.T, platforms ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, platform := range platforms {
		for _, command := range []string{"fleeting-plugin", "fleeting-plugin-openstack"} {
			name := command + "-" + platform
			if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, notices.FileName), []byte("all texts"), 0o644); err != nil {
		t.Fatal(err)
	}
	license := filepath.Join(t.TempDir(), "LICENSE")
	if err := os.WriteFile(license, []byte("MIT"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := dist.WriteArchives(dir, dist.ArchiveOptions{Version: "1.2.3", License: license, Time: time.Unix(1700000000, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func sumOf(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func TestArchives(t *testing.T) {
	t.Parallel()
	all := []string{"darwin-amd64", "darwin-arm64", "windows-amd64.exe", "windows-arm64.exe", "linux-amd64"}
	dir, again := archived(t, all...), archived(t, all...)
	for name, want := range map[string]map[string]string{
		"fleeting-plugin_1.2.3_windows_amd64.zip": {
			"fleeting-plugin.exe": "fleeting-plugin-windows-amd64.exe", "fleeting-plugin-openstack.exe": "fleeting-plugin-openstack-windows-amd64.exe", "LICENSE": "MIT", "THIRD_PARTY_NOTICES.txt": "all texts",
		},
		"fleeting-plugin_1.2.3_darwin_arm64.zip": {
			"fleeting-plugin": "fleeting-plugin-darwin-arm64", "fleeting-plugin-openstack": "fleeting-plugin-openstack-darwin-arm64", "LICENSE": "MIT", "THIRD_PARTY_NOTICES.txt": "all texts",
		},
	} {
		z, err := zip.OpenReader(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			got[f.Name] = string(content)
			if executable := f.Mode().Perm() == 0o755; executable != strings.HasPrefix(f.Name, "fleeting-plugin") {
				t.Errorf("%s of %s has mode %v", f.Name, name, f.Mode())
			}
		}
		_ = z.Close()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if sumOf(t, filepath.Join(dir, name)) != sumOf(t, filepath.Join(again, name)) {
			t.Errorf("%s is another each time", name)
		}
	}
	if found, err := filepath.Glob(filepath.Join(dir, "*linux*.zip")); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestScoopManifest holds the form of
// https://github.com/ScoopInstaller/Scoop/blob/master/schema.json: the fields that
// it requires, and architectures with an address and a sum of the right file.
func TestScoopManifest(t *testing.T) {
	t.Parallel()
	dir := archived(t, "windows-amd64.exe", "windows-arm64.exe")
	content, err := os.ReadFile(filepath.Join(dir, "fleeting-plugin.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Version, Homepage, License, Description, Checkver string
		Bin                                               []string
		Architecture                                      map[string]struct{ URL, Hash string }
	}
	if err := json.Unmarshal(content, &m); err != nil {
		t.Fatal(err)
	}
	if m.Version != "1.2.3" || !strings.HasPrefix(m.Homepage, "https://") || m.License != "MIT" || m.Description == "" || m.Checkver != "github" || len(m.Architecture) != 2 {
		t.Errorf("%s", content)
	}
	for name, file := range map[string]string{"64bit": "fleeting-plugin_1.2.3_windows_amd64.zip", "arm64": "fleeting-plugin_1.2.3_windows_arm64.zip"} {
		arch := m.Architecture[name]
		if !strings.HasSuffix(arch.URL, "/releases/download/v1.2.3/"+file) || arch.Hash != sumOf(t, filepath.Join(dir, file)) {
			t.Errorf("%s: %+v", name, arch)
		}
		z, err := zip.OpenReader(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, bin := range m.Bin {
			if _, err := z.Open(bin); err != nil {
				t.Errorf("%s is not in %s", bin, file)
			}
		}
		_ = z.Close()
	}
	if _, err := os.Stat(filepath.Join(dir, "fleeting-plugin.rb")); err == nil {
		t.Error("a formula without anything for macOS")
	}
}

// TestHomebrewFormula holds that every block is closed, that the name of the class
// is that of the file, and that each address has the sum of its file.
func TestHomebrewFormula(t *testing.T) {
	t.Parallel()
	dir := archived(t, "darwin-amd64", "darwin-arm64")
	content, err := os.ReadFile(filepath.Join(dir, "fleeting-plugin.rb"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	opened := regexp.MustCompile(`(?m)(^class |^\s*def | do$)`).FindAllString(text, -1)
	closed := regexp.MustCompile(`(?m)^\s*end$`).FindAllString(text, -1)
	if len(opened) != len(closed) || !strings.HasPrefix(text, "class FleetingPlugin < Formula\n") || strings.Contains(text, "{{") || strings.Contains(text, "&#") {
		t.Errorf("%d blocks are opened and %d closed:\n%s", len(opened), len(closed), text)
	}
	found := regexp.MustCompile(`url "[^"]*/download/v1\.2\.3/([^"/]+)"\n\s+sha256 "([0-9a-f]{64})"`).FindAllStringSubmatch(text, -1)
	if len(found) != 2 {
		t.Fatalf("%d archives:\n%s", len(found), text)
	}
	for _, one := range found {
		if one[2] != sumOf(t, filepath.Join(dir, one[1])) {
			t.Errorf("%s: another sum", one[1])
		}
	}
	if desc := regexp.MustCompile(`desc "([^"]*)"`).FindStringSubmatch(text); len(desc) != 2 || len(desc[1]) > 80 || strings.HasSuffix(desc[1], ".") {
		t.Errorf("Homebrew takes descriptions of 80 characters at most, without a full stop: %v", desc)
	}
}
