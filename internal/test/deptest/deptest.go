// Package deptest holds the import arrows between our packages: which package
// may know which. It reads them from the go command and checks them in its test.
//
// It checks imports, not calls, and says nothing of the standard library but
// where a package promises to use nothing else.
package deptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// Module is the path of our module.
const Module = "github.com/radome-io/fleeting-plugin-openstack"

// Package is what the go command says of a package.
type Package struct {
	ImportPath string
	// Standard is set for the standard library.
	Standard bool
	// Imports are those of the package itself, without its tests.
	Imports []string
	// Module is nil for the standard library.
	Module *struct{ Path string }
}

// Graph is every package that ours need, by import path.
type Graph map[string]Package

// Load asks the go command for the packages of the module in dir, and all that
// they need.
func Load(ctx context.Context, dir string) (Graph, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Standard,Imports,Module", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	graph := make(Graph)
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p Package
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return graph, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		graph[p.ImportPath] = p
	}
}

// Own lists our packages, sorted.
func (g Graph) Own() []string {
	var own []string
	for path := range g {
		if Under(path, Module) {
			own = append(own, path)
		}
	}
	slices.Sort(own)
	return own
}

// Why returns the way by which from comes to need a package below target: from
// first, the package last. It returns nil when from needs none.
func (g Graph) Why(from, target string) []string {
	type step struct {
		path string
		via  *step
	}
	seen := map[string]bool{from: true}
	for queue := []*step{{path: from}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, next := range g[at.path].Imports {
			if seen[next] {
				continue
			}
			seen[next] = true
			s := &step{path: next, via: at}
			if !Under(next, target) {
				queue = append(queue, s)
				continue
			}
			var way []string
			for ; s != nil; s = s.via {
				way = append(way, s.path)
			}
			slices.Reverse(way)
			return way
		}
	}
	return nil
}

// Links lists every package that from needs, itself among them, sorted.
func (g Graph) Links(from string) []string {
	seen := map[string]bool{from: true}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range g[queue[0]].Imports {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Modules lists the modules of others that from needs, sorted.
func (g Graph) Modules(from string) []string {
	modules := map[string]bool{}
	for _, path := range g.Links(from) {
		if m := g[path].Module; m != nil && m.Path != Module {
			modules[m.Path] = true
		}
	}
	return slices.Sorted(maps.Keys(modules))
}

// Under says whether path is root or a package below it.
func Under(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}
