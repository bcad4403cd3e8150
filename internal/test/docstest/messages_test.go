package docstest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// troubleshooting is the page whose headings are messages.
const troubleshooting = "docs/guides/troubleshooting.md"

// message is a heading of that page: the part of a message that does not vary.
type message struct {
	section, text string
}

func messages(t *testing.T) []message {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(troubleshooting)))
	if err != nil {
		t.Fatal(err)
	}
	var found []message
	section := ""
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSuffix(line, "\n")
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		if text, ok := strings.CutPrefix(line, "### `"); ok {
			found = append(found, message{section, strings.TrimSuffix(text, "`")})
		}
	}
	if len(found) < 50 {
		t.Fatalf("only %d messages found", len(found))
	}
	return found
}

// TestMessagesExist: troubleshooting is by message, so its messages have to be
// those of the code: ours, and in the section about the runner those of the
// libraries that the runner is made of, in the versions that we build with. An
// ellipsis stands for what varies.
func TestMessagesExist(t *testing.T) {
	t.Parallel()
	ours := sources(t, "plugin", "installer", "packager", "internal", "cmd")
	runners := sources(t, modules(t,
		"gitlab.com/gitlab-org/fleeting/fleeting", "gitlab.com/gitlab-org/fleeting/fleeting-artifact",
		"gitlab.com/gitlab-org/fleeting/taskscaler", "github.com/hashicorp/go-plugin", "golang.org/x/mod")...)
	for _, m := range messages(t) {
		code := ours
		switch {
		case slices.Contains(others(), m.text):
			continue
		case m.section == "The runner":
			code = runners
		}
		for part := range strings.SplitSeq(m.text, "…") {
			part = strings.ReplaceAll(strings.Trim(part, " "), `"`, `\"`)
			if !bytes.Contains(code, []byte(part)) && !bytes.Contains(code, []byte(strings.ReplaceAll(part, `\"`, `"`))) {
				t.Errorf("%s: no code says %q of %q", m.section, part, m.text)
			}
		}
	}
}

// others are messages of the Go library and of oras-go, which every program
// that speaks to a registry has, and one that golang.org/x/mod makes of parts.
func others() []string {
	return []string{
		"connect: connection refused", "malformed module path",
		"response status code 401", "response status code 404", "response status code 429",
		"x509: certificate signed by unknown authority",
	}
}

// TestMessagesAreSorted: who looks a message up can leaf through.
func TestMessagesAreSorted(t *testing.T) {
	t.Parallel()
	letters := regexp.MustCompile(`[^a-z0-9 ]`)
	key := func(m message) string {
		return strings.TrimSpace(letters.ReplaceAllString(strings.ToLower(m.text), ""))
	}
	sections := map[string][]message{}
	for _, m := range messages(t) {
		sections[m.section] = append(sections[m.section], m)
	}
	for section, list := range sections {
		for i, m := range list[1:] {
			if cmp.Compare(key(list[i]), key(m)) > 0 {
				t.Errorf("%s: %q comes after %q", section, m.text, list[i].text)
			}
		}
	}
}

// sources reads the Go files below folders, tests left out. A folder is
// absolute, or below the root.
func sources(t *testing.T, folders ...string) []byte {
	t.Helper()
	var all bytes.Buffer
	for _, folder := range folders {
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(root, folder)
		}
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			all.Write(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.Bytes()
}

// modules gives the folders of modules that this one is built with. A module
// that only some other test needs may not have been downloaded yet.
func modules(t *testing.T, paths ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"mod", "download", "-json"}, paths...)...).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var dirs []string
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var module struct{ Dir string }
		if err := decoder.Decode(&module); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, module.Dir)
	}
	if len(dirs) != len(paths) || slices.Contains(dirs, "") {
		t.Fatalf("not all of %v have a folder: %q", paths, dirs)
	}
	return dirs
}
