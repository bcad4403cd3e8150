package docstest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatsHaveTests: every row of the threat model's tables names a test, and
// each test that it names is there.
func TestThreatsHaveTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "explanation", "threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9/-]+)/(Test[A-Za-z0-9]+)`")
	sources := map[string]string{}
	rows := 0
	for line := range strings.SplitSeq(string(page), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| attack |") || strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, test := range tests {
			dir := test[1]
			if sources[dir] == "" {
				sources[dir] = testSources(t, filepath.Join(root, filepath.FromSlash(dir)))
			}
			if !strings.Contains(sources[dir], "\nfunc "+test[2]+"(t *testing.T) {") {
				t.Errorf("%s has no test %s", dir, test[2])
			}
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows", rows)
	}
}

// testSources are the tests in a folder, whatever system they are for.
func testSources(tb testing.TB, dir string) string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("%s has no tests: %v", dir, err)
	}
	var all strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}
