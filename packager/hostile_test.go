package packager_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/trusttest"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// TestGoreleaserListsNothingElsewhere: the list comes from another job, and
// must not have the publisher's own files published.
func TestGoreleaserListsNothingElsewhere(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dist := filepath.Join(root, "project", "dist")
	outside := filepath.Join(root, "outside")
	writeFile(t, outside, elfFile(), 0o755)
	writeFile(t, filepath.Join(dist, "x"), elfFile(), 0o755)
	list := filepath.Join(dist, "artifacts.json")
	for path, problem := range map[string]string{
		outside:                "is listed by goreleaser and is not in its folder",
		"../outside":           "is listed by goreleaser and is not in its folder",
		"dist/../../outside":   "is listed by goreleaser and is not in its folder",
		"dist/../../../../etc": "is listed by goreleaser and is not in its folder",
		"":                     "is listed by goreleaser and is not in its folder",
		"dist/nothing":         "is not there",
	} {
		writeFile(t, list, []byte(`[{"path": "`+path+`", "goos": "linux", "goarch": "amd64", "type": "Binary"}]`), 0o644)
		_, err := packager.Scan(t.Context(), dist, packager.ScanOptions{})
		if !errors.Is(err, packager.ErrInput) || !strings.Contains(err.Error(), problem) {
			t.Errorf("path %q: error = %v, want %q", path, err, problem)
		}
	}
	for name, content := range map[string]string{
		"null": "null", "object": "{}", "text": `"x"`, "numbers": "[1]", "followed by more": "[] []", "deep": strings.Repeat("[", 20000),
		"no end": `[{"path":`, "too long": "[" + strings.Repeat(" ", 17<<20) + "]",
	} {
		writeFile(t, list, []byte(content), 0o644)
		if _, err := packager.Scan(t.Context(), dist, packager.ScanOptions{}); !errors.Is(err, packager.ErrInput) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	notAFile(t, list)
	if _, err := packager.Scan(t.Context(), dist, packager.ScanOptions{}); !errors.Is(err, packager.ErrInput) {
		t.Errorf("not a file: error = %v", err)
	}
}

// TestExecutableOfAnotherSystem changes single fields of an ELF header.
func TestExecutableOfAnotherSystem(t *testing.T) {
	t.Parallel()
	patched := func(at int, value byte) []byte {
		b := elfFile()
		b[at] = value
		return b
	}
	for name, content := range map[string][]byte{
		"netbsd": patched(7, 2), "solaris": patched(7, 6), "openbsd": patched(7, 12), "an unknown system": patched(7, 200),
		"32 bits": patched(4, 1), "big endian": patched(5, 2),
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "linux/amd64/plugin"), content, 0o755)
		if _, err := packager.Scan(t.Context(), dir, packager.ScanOptions{}); !errors.Is(err, packager.ErrInput) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	// Android's header is that of Linux; the build information differs.
	dir := t.TempDir()
	copyFile(t, executable(t, "android/arm64", "1.0.0"), filepath.Join(dir, "linux/arm64/plugin"), 0o755)
	_, err := packager.Scan(t.Context(), dir, packager.ScanOptions{})
	if !errors.Is(err, packager.ErrInput) || !strings.Contains(err.Error(), "android/arm64") {
		t.Errorf("android: error = %v", err)
	}
}

// TestDynamicExecutable is INTEROP 32: an executable that needs a loader is
// published with a warning that says where it will not start.
func TestDynamicExecutable(t *testing.T) {
	t.Parallel()
	content := elfFile()
	content[32], content[54], content[56] = 64, 56, 1       // one program header, behind the file's
	copy(content[64:], []byte{3, 0, 0, 0, 4, 0, 0, 0, 120}) // PT_INTERP, at 120
	copy(content[120:], "/lib64/ld-linux-x86-64.so.2\x00")  // its text
	content[64+32], content[64+40] = 28, 28                 // and size
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "linux/amd64/plugin"), content, 0o755)
	warnings := scan(t, dir).Warnings()
	if len(warnings) == 0 || !strings.Contains(warnings[0].String(), "linked dynamically") || !strings.Contains(warnings[0].String(), "cannot run as a container") || !strings.Contains(warnings[0].String(), "CGO_ENABLED=0") {
		t.Errorf("warnings: %v", warnings)
	}
	writeFile(t, filepath.Join(dir, "linux/amd64/plugin"), elfFile(), 0o755)
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
		dir := writeDist(t, "1.0.0", tt.platform)
		writeFile(t, filepath.Join(dir, tt.platform, tt.name), []byte("x"), 0o644)
		dist, err := packager.Scan(t.Context(), dir, packager.ScanOptions{})
		if tt.ok && err == nil {
			_, err = packager.Pack(t.Context(), dist, version(t, "1.0.0"), filepath.Join(t.TempDir(), "layout"), packager.PackOptions{})
		}
		if tt.ok && err != nil || !tt.ok && !errors.Is(err, packager.ErrInput) {
			t.Errorf("%s: %q: error = %v", tt.platform, tt.name, err)
		}
	}
}

// TestLinkedFolderIsNotLeftOut: a platform that is silently missing is noticed
// by its users only.
func TestLinkedFolderIsNotLeftOut(t *testing.T) {
	t.Parallel()
	for _, link := range []string{"linux", "linux/amd64"} {
		real, dir := writeDist(t, "1.0.0", "linux/amd64"), writeDist(t, "1.0.0", "darwin/arm64")
		mkdir(t, dir, filepath.Dir(link))
		if err := os.Symlink(filepath.Join(real, link), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		_, err := packager.Scan(t.Context(), dir, packager.ScanOptions{})
		if !errors.Is(err, packager.ErrInput) || !strings.Contains(err.Error(), "is a symbolic link") {
			t.Errorf("%s: error = %v", link, err)
		}
	}
}

// TestListedVersionThatIsGone: registries go on listing deleted tags for a
// while, some for ever.
func TestListedVersionThatIsGone(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	repo := repository(t, reg.Host+"/gone")
	releasePlain(t, repo, "1.0.0")
	reg.Gate.Break(t, registrytest.Fault{Path: "/tags/list$", Status: http.StatusOK, Body: `{"name": "gone", "tags": ["1.0.0", "1.0.1", "1.5.0", "9.9.9"]}`})
	dir := t.TempDir()
	writeFile(t, dir+"/linux/amd64/plugin", append(elfFile(), "1.0.1"...), 0o755)
	for _, want := range []bool{true, false} { // a plan to move them, and after it was done, none
		planned, err := packager.Release(t.Context(), scan(t, dir), version(t, "1.0.1"), repo,
			packager.ReleaseOptions{DryRun: true, PackOptions: packager.PackOptions{Metadata: metadata(), SkipSBOM: true}})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range planned.Aliases {
			if a.Version.String() != "1.0.1" || a.Moved != want {
				t.Errorf("planned: %s → %s, moved %t", a.Tag, a.Version, a.Moved)
			}
		}
		releasePlain(t, repo, "1.0.1")
	}
	done := releasePlain(t, repo, "1.0.1")
	reg.Gate.Mend()
	got := tags(t, repo)
	for _, alias := range []string{"1.0", "1", "latest"} {
		if got[alias] != done.Digest.String() {
			t.Errorf("%s is %s, want 1.0.1, %s", alias, got[alias], done.Digest)
		}
	}
}

// TestLargeEvidenceOfOthers: what somebody else attested is no reason not to
// sign.
func TestLargeEvidenceOfOthers(t *testing.T) {
	t.Parallel()
	signer, _ := keyPair(t)
	reg := registrytest.New(t)
	repo := repository(t, reg.Host+"/large")
	done := releasePlain(t, repo, "1.0.0")
	content := []byte(`{"payload": "` + strings.Repeat("A", 5<<20) + `"}`)
	large := artifact.Describe(artifact.MediaTypeDSSE, content)
	config, empty := artifact.EmptyConfig()
	for desc, content := range map[digest.Digest][]byte{large.Digest: content, config.Digest: empty} {
		if _, err := repo.PushBlob(t.Context(), ocispec.Descriptor{Digest: desc, Size: int64(len(content))},
			func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }); err != nil {
			t.Fatal(err)
		}
	}
	desc, manifest, err := artifact.EncodeManifest(artifact.ManifestInput{Config: config, Layers: []ocispec.Descriptor{large}})
	if err != nil {
		t.Fatal(err)
	}
	tag := trusttest.Tag(done.Digest, "att")
	if err := repo.PushManifest(t.Context(), desc, manifest, tag); err != nil {
		t.Fatal(err)
	}
	predicate := packager.Predicate{Type: "https://example.com/scan/v1", Content: []byte(`{}`)}
	if _, err := packager.Attest(t.Context(), repo, "1.0.0", signer, []packager.Predicate{predicate}, packager.SignOptions{}); err != nil {
		t.Fatal(err)
	}
	report, err := packager.Inspect(t.Context(), repo, "1.0.0", packager.InspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]int{}
	for _, a := range report.Attestations {
		if a.PredicateType == predicate.Type && a.Subject == "index" {
			forms[a.Form]++
		}
	}
	if diff := cmp.Diff(map[string]int{"tag": 1, "bundle": 1}, forms); diff != "" {
		t.Errorf("attestations (-want +got):\n%s", diff)
	}
}

// TestLinksLoseTheirPasswords also where a link cannot be parsed.
func TestLinksLoseTheirPasswords(t *testing.T) {
	t.Parallel()
	for _, link := range []string{
		"https://user:s3cret@example.com/a", "https://user:s3cret%zz@example.com/a", "https://gitlab-ci-token:s3cret@example.com:x/a.git",
	} {
		b := packager.Build{Type: "t", Builder: "b", Source: "git+" + link, Invocation: link}
		p, err := b.Provenance()
		if err != nil || strings.Contains(string(p.Content), "s3cret") {
			t.Errorf("%s: %v\n%s", link, err, p.Content)
		}
		env := map[string]string{"GITLAB_CI": "true", "CI_PROJECT_URL": link}
		m, err := packager.DetectMetadata(func(n string) (string, bool) { v, ok := env[n]; return v, ok })
		if err != nil || strings.Contains(m.Source+m.URL, "s3cret") {
			t.Errorf("%s: %v, %q %q", link, err, m.Source, m.URL)
		}
		build := packager.LocalBuild(func(n string) (string, bool) { v, ok := env[n]; return v, ok })
		if p, err = build.Provenance(); err != nil || strings.Contains(string(p.Content), "s3cret") {
			t.Errorf("%s: %v\n%s", link, err, p.Content)
		}
	}
}
