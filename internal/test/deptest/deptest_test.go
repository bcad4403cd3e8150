package deptest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArrows(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	touch(t, root)
	graph, err := Load(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if own := graph.Own(); len(own) < 3 {
		t.Fatalf("only %d packages of ours found: %v", len(own), own)
	}
	for _, violation := range graph.Violations() {
		t.Error(violation)
	}
}

// TestLinkedModules: decision 11 has the reason of each module that the tools link.
func TestLinkedModules(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	graph, err := Load(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/explanation/decisions/0011-proofs-by-code-of-ours.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for module := range strings.SplitSeq(cells[1], ",") {
				named[strings.TrimSpace(module)] = true
			}
		}
	}
	modules := graph.Modules(own("cmd/fleeting-plugin"))
	if len(modules) < 20 {
		t.Fatalf("only %d modules found: %v", len(modules), modules)
	}
	for _, module := range modules {
		if !named[module] {
			t.Errorf("%s is linked, and decision 11 does not say what for", module)
		}
	}
}

// touch looks at every source file, so that the go command does not take an
// earlier result of this test for the present one.
func touch(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		_, err = os.Stat(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// graphOf makes a graph; a package not named as a key is one of the standard
// library.
func graphOf(imports map[string][]string) Graph {
	g := make(Graph)
	for pkg, list := range imports {
		for _, imported := range list {
			if _, ok := g[imported]; !ok {
				g[imported] = Package{ImportPath: imported, Standard: imports[imported] == nil}
			}
		}
		g[pkg] = Package{ImportPath: pkg, Imports: list}
	}
	return g
}

func TestViolations(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		imports map[string][]string
		want    int
	}{
		{"nothing wrong", map[string][]string{
			own("plugin"):                {"context", own("plugin/internal/cloud")},
			own("plugin/internal/cloud"): {gophercloud + "/v2"},
			gophercloud + "/v2":          {},
		}, 0},
		{"through another package", map[string][]string{
			own("plugin"):    {"example.test/x"},
			"example.test/x": {oras + "/oras-go/v2"},
		}, 1},
		{"a second importer", map[string][]string{
			own("installer"): {oras + "/oras-go/v2"},
		}, 1},
		{"a test double in a library", map[string][]string{
			own("packager"):                   {own("internal/test/registrytest")},
			own("internal/test/registrytest"): {"testing"},
		}, 1},
		{"a leaf that grew", map[string][]string{
			own("installer/version"): {"strings", own("internal/artifact")},
			own("internal/artifact"): {"strings"},
		}, 1},
		{"a command-line framework in a library", map[string][]string{
			own("packager"):          {"example.test/x"},
			"example.test/x":         {"github.com/spf13/cobra"},
			"github.com/spf13/cobra": {},
		}, 1},
		{"a package whose name only starts alike", map[string][]string{
			own("plugins"): {sigstore + "x/y"},
		}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := graphOf(tt.imports).Violations(); len(got) != tt.want {
				t.Errorf("%d violations, want %d: %v", len(got), tt.want, got)
			}
		})
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	imports := map[string][]string{}
	for i := range budgets()[0].most {
		imports[own(budgets()[0].pkg)] = append(imports[own(budgets()[0].pkg)], fmt.Sprintf("example.test/x%d", i))
	}
	if got := graphOf(imports).Violations(); len(got) != 1 {
		t.Errorf("one package too many: %v", got)
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	g := graphOf(map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"x/y"}, "d": {"a"}})
	if diff := cmp.Diff([]string{"a", "c", "x/y"}, g.Why("a", "x")); diff != "" {
		t.Errorf("Why (-want +got):\n%s", diff)
	}
	if way := g.Why("a", "nothing"); way != nil {
		t.Errorf("Why = %v, want none", way)
	}
}
