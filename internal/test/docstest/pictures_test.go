package docstest

import (
	"encoding/xml"
	"errors"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPicturesAreReadable: every picture is well-formed, has a title, and says
// how it looks on a dark page.
func TestPicturesAreReadable(t *testing.T) {
	t.Parallel()
	for _, file := range pictures(t, "*.svg") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(strings.NewReader(string(content)))
		for {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		for _, part := range []string{"<title>", "prefers-color-scheme: dark"} {
			if !strings.Contains(string(content), part) {
				t.Errorf("%s has no %s", file, part)
			}
		}
	}
}

// TestPicturesAreFresh: a drawn picture shows what its source says; make
// pictures draws it.
func TestPicturesAreFresh(t *testing.T) {
	t.Parallel()
	label := regexp.MustCompile(`label="([^"]*)"`)
	for _, file := range pictures(t, "*.dot") {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		picture, err := os.ReadFile(strings.TrimSuffix(file, ".dot") + ".svg")
		if err != nil {
			t.Fatal(err)
		}
		shown := plain(string(picture))
		for _, found := range label.FindAllStringSubmatch(string(source), -1) {
			for line := range strings.SplitSeq(strings.ReplaceAll(found[1], `\l`, `\n`), `\n`) {
				if line = plain(line); !strings.Contains(shown, line) {
					t.Errorf("%s: the picture does not show %q; run make pictures", file, line)
				}
			}
		}
	}
}

// plain makes blanks of every kind one, as a reader sees them.
func plain(s string) string {
	return strings.Join(strings.Fields(html.UnescapeString(s)), " ")
}

func pictures(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs", "pictures", pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2 {
		t.Fatalf("only %d pictures are %s", len(files), pattern)
	}
	return files
}
