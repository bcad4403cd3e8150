package docstest

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// releaseFlag is the release that is about to be made: `make release-ready`.
var releaseFlag = flag.String("release", "", "release that CHANGELOG.md and the documentation have to name, such as 1.2.3")

const (
	// notReleased stands in installPage as long as there is no release.
	notReleased = "There is no release yet"
	installPage = "docs/guides/install.md"
)

// mention is a place that names a release of ours.
type mention struct{ where, version string }

// mentions returns the places of a text that name a release of ours: references,
// the folders that they are installed in, the action, the component and what
// installs the tool. A version may be a minor one, such as 1.2.
func mentions(file, text string) []mention {
	pattern := regexp.MustCompile(
		`radome-io/fleeting-plugin(?:-openstack)?(?:/publish|/\.github/actions/publish)?[:/@]v?(\d+\.\d+(?:\.\d+(?:-[0-9A-Za-z.-]+)?)?)\b` +
			`|tool-version: v(\S+)|openstackVersion = "(\S+)"`)
	var found []mention
	number := 0
	for line := range strings.Lines(text) {
		number++
		for _, match := range pattern.FindAllStringSubmatch(line, -1) {
			found = append(found, mention{fmt.Sprintf("%s:%d", file, number), strings.Join(match[1:], "")})
		}
	}
	return found
}

// newestRelease is that of a changelog, whose headings are versions, or "".
func newestRelease(changelog string) string {
	if match := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)$`).FindStringSubmatch(changelog); match != nil {
		return match[1]
	}
	return ""
}

// names says whether a version that is written somewhere stands for the release.
func names(version, release string) bool {
	return version == release || strings.Count(version, ".") == 1 && strings.HasPrefix(release, version+".")
}

// TestDocsNameTheRelease: everything that users copy names one release of ours,
// the newest of CHANGELOG.md. As long as that has none, it is the coming one, and
// installPage says so.
func TestDocsNameTheRelease(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	var found []mention
	for _, file := range copied(t) {
		found = append(found, mentions(file, read(file))...)
	}
	if len(found) < 25 {
		t.Fatalf("only %d places name a release: %v", len(found), found)
	}
	release := newestRelease(read("CHANGELOG.md"))
	if *releaseFlag != "" && release != *releaseFlag {
		t.Errorf("CHANGELOG.md: the newest heading of a release is %q, want ## %s", release, *releaseFlag)
	}
	if got, want := strings.Contains(read(installPage), notReleased), release == ""; got != want {
		t.Errorf("%s says that %q: %t, want %t", installPage, notReleased, got, want)
	}
	if release == "" {
		release = mentions("", read("templates/publish.yml"))[0].version
	}
	for _, m := range found {
		if !names(m.version, release) {
			t.Errorf("%s names the release %s, want %s", m.where, m.version, release)
		}
	}
}

// copied lists the files that users copy from, and the test that runs what they
// say.
func copied(t *testing.T) []string {
	t.Helper()
	files := append(pages(t), "internal/test/e2e/lab_test.go")
	for _, folder := range []string{"docs", "templates", ".github"} {
		err := fs.WalkDir(os.DirFS(root), folder, func(name string, _ fs.DirEntry, err error) error {
			if slices.Contains([]string{".yml", ".yaml", ".toml"}, filepath.Ext(name)) {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestMentions(t *testing.T) {
	t.Parallel()
	text := strings.Join([]string{
		"ghcr.io/radome-io/fleeting-plugin-openstack:0.2.0-rc.1@sha256:DIGEST and ghcr.io/radome-io/fleeting-plugin:0.3",
		"/plugins/ghcr.io/radome-io/fleeting-plugin-openstack/0.4.0",
		"component: $CI_SERVER_FQDN/radome-io/fleeting-plugin-openstack/publish@v0.5.0",
		"uses: radome-io/fleeting-plugin-openstack/.github/actions/publish@v0.6.0 # pin",
		"  tool-version: v0.7.0",
		"\topenstackVersion = \"0.8.0\"",
		"ghcr.io/radome-io/fleeting-plugin-openstack:X.Y.Z ghcr.io/acme/plugin:1.2.3 https://github.com/radome-io/fleeting-plugin-openstack/releases",
	}, "\n")
	var got []string
	for _, m := range mentions("f", text) {
		got = append(got, m.where+" "+m.version)
	}
	want := []string{"f:1 0.2.0-rc.1", "f:1 0.3", "f:2 0.4.0", "f:3 0.5.0", "f:4 0.6.0", "f:5 0.7.0", "f:6 0.8.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mentions (-want +got):\n%s", diff)
	}
	if got := newestRelease("# Changelog\n\n## Unreleased\n\n## 1.10.0\n\n## 1.9.0\n"); got != "1.10.0" {
		t.Errorf("newestRelease = %q", got)
	}
	for version, want := range map[string]bool{"1.10.0": true, "1.10": true, "1.1": false, "1.10.1": false, "1.1.0": false} {
		if got := names(version, "1.10.0"); got != want {
			t.Errorf("names(%s) = %t", version, got)
		}
	}
}
