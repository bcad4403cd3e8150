package installer_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
)

// documented are the reasons in the table at Reason, sorted.
func documented(t *testing.T) []string {
	t.Helper()
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(?:Err\w+)? +([a-z-]+)  +\w`).FindAllStringSubmatch(string(source), -1) {
		words = append(words, m[1])
	}
	slices.Sort(words)
	return words
}

// TestReasonsDocumented: the table has all reasons that the sources make, and no
// other.
func TestReasonsDocumented(t *testing.T) {
	t.Parallel()
	var made []string
	for _, root := range []string{".", filepath.Join("..", "internal", "ociregistry"), filepath.Join("..", "internal", "artifact")} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if word, ok := reasonIn(n); ok {
					made = append(made, word)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(made)
	if diff := cmp.Diff(documented(t), made); diff != "" {
		t.Errorf("reasons (-documented +made):\n%s", diff)
	}
}

// reasonIn returns the word in a call of reason.New or refusal.
func reasonIn(n ast.Node) (string, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return "", false
	}
	at := -1
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		if fun.Name == "refusal" {
			at = 0
		}
	case *ast.SelectorExpr:
		if pkg, ok := fun.X.(*ast.Ident); ok && pkg.Name == "reason" && fun.Sel.Name == "New" {
			at = 1
		}
	}
	if at < 0 || len(call.Args) <= at {
		return "", false
	}
	literal, ok := call.Args[at].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	word, err := strconv.Unquote(literal.Value)
	return word, err == nil
}

// TestKinds: errors match their kind and no other, and say their reason.
func TestKinds(t *testing.T) {
	t.Parallel()
	kinds := map[string]error{
		"refused": installer.ErrRefused, "invalid": installer.ErrInvalid, "not found": installer.ErrNotFound,
		"differs": installer.ErrDiffers, "bad content": installer.ErrBadContent, "evidence": installer.ErrEvidence,
		"no space": installer.ErrNoSpace, "unavailable": installer.ErrUnavailable, "rate limited": installer.ErrRateLimited,
		"unauthorized": installer.ErrUnauthorized, "forbidden": installer.ErrForbidden, "answer": installer.ErrAnswer,
	}
	folder, err := installer.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ref := reference(t, "registry.example.com/team/plugin:1")
	bare := newInstaller(t, installer.Policy{})
	for name, c := range map[string]struct {
		kind, reason string
		do           func() error
	}{
		"reference": {"invalid", "reference", func() error { _, err := installer.ParseReference("/"); return err }},
		"policy":    {"invalid", "policy", func() error { _, err := installer.ParsePolicy([]byte("version = 7"), nil); return err }},
		"signer":    {"invalid", "policy", func() error { _, err := installer.RequireKey([]byte("x"), installer.KeyOptions{}); return err }},
		"lock":      {"invalid", "lock", func() error { _, err := installer.ParseLock([]byte("=")); return err }},
		"config":    {"invalid", "runner-config", func() error { _, err := installer.ParseRunnerConfig([]byte("=")); return err }},
		"platform": {"invalid", "platform", func() error {
			_, err := installer.New(installer.Policy{}, installer.WithPlatform("a/b/c/d"))
			return err
		}},
		"no rule": {"refused", "no-rule", func() error { _, err := bare.Verify(t.Context(), ref); return err }},
		"bundle":  {"refused", "bundle", func() error { _, err := installer.ReadBundles(strings.NewReader(""), "x"); return err }},
		"not installed": {"not found", "not-installed", func() error {
			_, err := folder.LookPath(ref)
			return err
		}},
		"not locked": {"not found", "not-locked", func() error { _, err := installer.Lock{}.Find(ref); return err }},
		"corrupt": {"bad content", "corrupt", func() error {
			return installer.ExtractLayoutTar(t.Context(), strings.NewReader("no archive"), t.TempDir())
		}},
	} {
		err := fmt.Errorf("outside: %w", c.do())
		for kind, sentinel := range kinds {
			if got, want := errors.Is(err, sentinel), kind == c.kind; got != want {
				t.Errorf("%s: %v is %s: %t; want %t", name, err, kind, got, want)
			}
		}
		if diff := cmp.Diff([]installer.Reason{installer.Reason(c.reason)}, installer.Reasons(err)); diff != "" {
			t.Errorf("%s: %v: reasons (-want +got):\n%s", name, err, diff)
		}
		if !errors.Is(err, installer.Reason(c.reason)) || errors.Is(err, installer.Reason("other")) {
			t.Errorf("%s: %v does not match its reason, or matches another", name, err)
		}
	}
}
