package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/docgen"
)

func topic(t *testing.T, title string) []docgen.Item {
	t.Helper()
	for _, topic := range topics() {
		if topic.Title == title {
			return topic.Items
		}
	}
	t.Fatalf("no topic %q", title)
	return nil
}

// TestExitStatus: the manual page says of the codes what their own page says.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range topic(t, "Exit status") {
		if row := "| " + item.Name + " | " + item.Text + " |"; !strings.Contains(string(page), row) {
			t.Errorf("no row %q", row)
		}
	}
}

// TestEnvironment: every variable that the tool reads is on the manual page, and
// every one on the page is read.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	// Names of constants of formats, and what is set for the programs that are
	// started; the last line has names without an underscore, and what Go's library reads.
	others := []string{
		"EM_*", "X86_64", "FLEETING_INSTANCE_GROUP_PLUGIN", "FLEETING_PLUGIN_PKG_VERSION", "GOOS", "GOARCH",
		"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "GOMODCACHE", "GOPATH",
	}
	var listed []string
	for _, item := range topic(t, "Environment") {
		listed = append(listed, strings.Split(item.Name, ", ")...)
	}
	known := func(names []string, name string) bool {
		return slices.ContainsFunc(names, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok })
	}
	read := []string{}
	for _, dir := range []string{".", "../../internal/cli", "../../internal/places", "../../internal/ociregistry", "../../packager", "../../packager/internal/signer", "../../installer"} {
		for name := range variablesIn(t, dir) {
			read = append(read, name)
			if !known(listed, name) && !known(others, name) {
				t.Errorf("%s: %s is not on the manual page", dir, name)
			}
		}
	}
	for _, pattern := range listed {
		if !slices.ContainsFunc(read, func(name string) bool { return known([]string{pattern}, name) }) && !slices.Contains(others, pattern) {
			t.Errorf("nothing reads %s", pattern)
		}
	}
}

// variablesIn are the strings in the code of a package that look like the name of
// an environment variable.
func variablesIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	like := regexp.MustCompile(`^"[A-Z][A-Z0-9]*_[A-Z0-9_]+"$`)
	found := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "man.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && like.MatchString(lit.Value) {
				found[strings.Trim(lit.Value, `"`)] = true
			}
			return true
		})
	}
	return found
}

// TestManualPage: the page has what people look for in one.
func TestManualPage(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	app := cli.New(nil, &out, nil, nil)
	if code := app.Run(t.Context(), NewRootCmd(app), []string{"man"}); code != cli.OK {
		t.Fatal(code)
	}
	at := -1
	for _, section := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "INSTALL PLUGINS", "EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"} {
		next := strings.Index(out.String(), "\n.SH "+section+"\n")
		if next <= at {
			t.Errorf("no section %s, or too early", section)
		}
		at = next
	}
}
