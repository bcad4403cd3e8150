package sbom

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/licensecheck"

	"github.com/radome-io/fleeting-plugin-openstack/internal/modcache"
)

// minCoverage is the share of a licence file, in percent, that must match known
// texts before its licence is believed; the Go package index uses the same figure.
const minCoverage = 75

// ModuleCache reads licences from a Go module cache. It is safe for concurrent
// use and remembers what it found.
type ModuleCache struct {
	dir   string
	mu    sync.Mutex
	known map[string]string
	scan  func() (*licensecheck.Scanner, error)
}

// NewModuleCache returns a finder over dir, the folder that
// "go env GOMODCACHE" prints. A folder that does not exist finds nothing.
func NewModuleCache(dir string) *ModuleCache {
	return &ModuleCache{
		dir:   dir,
		known: map[string]string{},
		scan:  sync.OnceValues(newScanner),
	}
}

// newScanner knows the licences that Go modules are published under. All texts
// of licensecheck together take two seconds of CPU to prepare, these 50 ms.
func newScanner() (*licensecheck.Scanner, error) {
	families := []string{
		"0BSD", "AFL-3.0", "AGPL-3.0", "Apache-", "Artistic-2.0", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause",
		"BSL-1.0", "BlueOak-1.0.0", "CC-BY-4.0", "CC-BY-SA-4.0", "CC0-1.0", "CDDL-1.", "EPL-", "EUPL-1.2", "GPL-2.0",
		"GPL-3.0", "ISC", "LGPL-2.1", "LGPL-3.0", "MIT", "MPL-2.0", "NCSA", "OFL-1.1", "PostgreSQL", "Python-2.0",
		"Unicode-DFS", "Unlicense", "UPL-1.0", "WTFPL", "X11", "Zlib",
	}
	var known []licensecheck.License
	for _, l := range licensecheck.BuiltinLicenses() {
		if listed(l.ID) && slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(l.ID, f) }) {
			known = append(known, l)
		}
	}
	return licensecheck.NewScanner(known)
}

// License returns the SPDX expression for the licence files in the module's
// root folder, several joined by AND, or by OR if their file leaves the choice, or "" if the module is not in the cache
// or its text is not recognised.
func (c *ModuleCache) License(path, version string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := path + "@" + version
	if found, ok := c.known[key]; ok {
		return found
	}
	found := c.find(path, version)
	c.known[key] = found
	return found
}

func (c *ModuleCache) find(path, version string) string {
	root, err := modcache.Open(c.dir, path, version)
	if err != nil {
		return ""
	}
	defer root.Close() //nolint:errcheck // read only
	texts, err := modcache.Licenses(root.FS())
	if err != nil {
		return ""
	}
	var ids []string
	for _, text := range texts {
		ids = append(ids, c.identify(text.Content)...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 1 {
		return strings.Trim(ids[0], "()")
	}
	return strings.Join(ids, " AND ")
}

// identify returns the SPDX identifiers found in one text.
func (c *ModuleCache) identify(text []byte) []string {
	scanner, err := c.scan()
	if err != nil {
		return nil
	}
	coverage := scanner.Scan(text)
	if coverage.Percent < minCoverage {
		return nil
	}
	var ids []string
	for _, m := range coverage.Match {
		if !m.IsURL {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > 1 && choice.Match(text[:coverage.Match[0].Start]) {
		return []string{"(" + strings.Join(ids, " OR ") + ")"}
	}
	return ids
}

// choice is how the words before several licences in one file say that users choose
// one of them.
var choice = regexp.MustCompile(`(?i)\bat your (option|choice)\b|\beither\b|\bdual[- ]licensed\b`)

// listed says whether an identifier is on SPDX's licence list. The texts that
// licensecheck knows beyond that list have names that no other tool knows.
func listed(id string) bool {
	return !slices.Contains([]string{
		"Aladdin-9", "Anti996", "BSD-1-Clause-Clear", "BSD-3-Clause-NoTrademark", "CC-BY-NC-SA-3.0-US", "CommonsClause",
		"GPL-2.0-or-3.0", "GooglePatentClause", "GooglePatentsFile", "MIT-NoAd", "Prosperity-3.0.0",
	}, id)
}

// isID says whether an expression is a single identifier of SPDX's licence
// list, as far as licensecheck knows it.
func isID(expression string) bool {
	return listed(expression) && slices.ContainsFunc(licensecheck.BuiltinLicenses(), func(l licensecheck.License) bool {
		return l.ID == expression
	})
}
