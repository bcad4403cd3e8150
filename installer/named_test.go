package installer_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReportsAreNamed holds that what INTEROP.md has against other installers,
// as far as it is about installing, is named by the test that is about it: "C" is
// a fault of the runner's, a number is a report about tools like ours. What is
// left out is about publishing.
func TestReportsAreNamed(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, dir := range []string{".", filepath.Join("..", "internal", "ociregistry"), filepath.Join("..", "cmd", "fleeting-plugin")} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") && filepath.Ext(path) != ".txtar" || path == "named_test.go" {
				return err
			}
			content, err := os.ReadFile(path)
			for _, name := range namesIn(string(content)) {
				named[name] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range strings.FieldsSeq(`C1 C2 C2b C2c C2d C2e C3 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13 C14 C15 C16 C17 C18 C19 C20 C21 C22 C23 C27
		2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 26 27 28 29 30 31 32 33 34 35`) {
		if !named[name] {
			t.Errorf("no test names %s", name)
		}
	}
}

// namesIn finds the names behind INTEROP in a comment, at the beginning of a
// case's name, and at the beginning of a part of a script.
func namesIn(text string) []string {
	text = strings.NewReplacer("\n// ", " ", "\n\t// ", " ").Replace(text)
	name := regexp.MustCompile(`\bC?[0-9]+[a-e]?\b`)
	var names []string
	for _, where := range []*regexp.Regexp{
		regexp.MustCompile(`INTEROP((?:[ ,]|and|C?[0-9]+[a-e]?\b)+)`),
		regexp.MustCompile(`"(C[0-9]+[a-e]?) `),
		regexp.MustCompile(`(?m)^# ((?:C?[0-9]+[a-e]?(?:, )?)+):`),
	} {
		for _, found := range where.FindAllStringSubmatch(text, -1) {
			names = slices.Concat(names, name.FindAllString(found[1], -1))
		}
	}
	return names
}
