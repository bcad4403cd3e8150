package sbom

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrIncomplete is wrapped by the errors of [New] when a field that every
// document must carry is missing.
var ErrIncomplete = errors.New("bill of materials is incomplete")

// Info is what a document says about the release as a whole.
type Info struct {
	// Name of the release, for instance "example.com/fleeting-plugin-foo".
	Name string
	// Version of the release, without a leading "v".
	Version string
	// Supplier is the organisation that publishes the release. Empty means
	// that it is derived from the main module's path.
	Supplier string
	// License is the SPDX expression of the release itself; empty is unknown.
	License string
	// Created is written into the document, in UTC, to the second. Take it from
	// SOURCE_DATE_EPOCH or the commit, not from the clock, to stay reproducible.
	Created time.Time
	// Tool and ToolVersion name the program that asks for the document.
	Tool, ToolVersion string
}

// Document is the inventory of one release: one or more executables. Make it
// with [New]; write it with [Document.SPDX] or [Document.CycloneDX].
type Document struct {
	info        Info
	executables []Executable
}

// New returns the document for the executables of one release: one per
// platform, or just one. It returns an error that wraps [ErrIncomplete] if a
// name, version or time is missing or no executable is given.
func New(info Info, executables ...Executable) (*Document, error) {
	var missing []string
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"a name", info.Name != ""},
		{"a version", info.Version != ""},
		{"a creation time", !info.Created.IsZero()},
		{"the name of the tool", info.Tool != ""},
		{"an executable", len(executables) > 0},
	} {
		if !field.set {
			missing = append(missing, field.name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: it needs %s", ErrIncomplete, strings.Join(missing, ", "))
	}
	info.Created = info.Created.UTC().Truncate(time.Second)
	sorted := slices.Clone(executables)
	slices.SortStableFunc(sorted, func(a, b Executable) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.Name, b.Name))
	})
	if info.Supplier == "" {
		info.Supplier = supplierOf(sorted[0].Main.Path)
	}
	if info.Supplier == "" {
		info.Supplier = supplierOf(info.Name)
	}
	return &Document{info: info, executables: sorted}, nil
}

// Info returns what the document says about the release.
func (d *Document) Info() Info { return d.info }

// Executables returns the executables, sorted by platform.
func (d *Document) Executables() []Executable { return slices.Clone(d.executables) }

// Modules returns every module of every executable once, the standard library
// included and the main modules left out, sorted by path and version.
func (d *Document) Modules() []Module {
	var all []Module
	for _, e := range d.executables {
		all = append(all, e.linked()...)
	}
	slices.SortFunc(all, Module.compare)
	return slices.CompactFunc(all, func(a, b Module) bool { return a.compare(b) == 0 })
}

// mains returns the main modules, normally one.
func (d *Document) mains() []Module {
	var all []Module
	for _, e := range d.executables {
		if e.Main.Path != "" {
			all = append(all, e.main(d.info))
		}
	}
	slices.SortFunc(all, Module.compare)
	return slices.CompactFunc(all, func(a, b Module) bool { return a.compare(b) == 0 })
}

// supplierOf names who publishes a module, from its path: the owner on the
// known forges, the host elsewhere.
func supplierOf(path string) string {
	parts := strings.Split(path, "/")
	switch {
	case path == "" || path == stdlib:
		return ""
	case len(parts) > 1 && slices.Contains([]string{"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"}, parts[0]):
		return parts[0] + "/" + parts[1]
	default:
		return parts[0]
	}
}
