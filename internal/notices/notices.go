// Package notices collects the licences, notices and patents of everything that is
// linked into Go executables, as one text to ship beside them.
//
// What is linked comes from the executables themselves, the texts from the module
// cache and the Go installation that built them. The package downloads nothing and
// judges no licence.
package notices

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/radome-io/fleeting-plugin-openstack/internal/modcache"
	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// FileName is what the text is called beside an executable, where [Licenses] and
// people find it.
const FileName = "THIRD_PARTY_NOTICES.txt"

// standard is how the go command names the packages of the standard library.
const standard = "std"

// Errors of [Collect], for callers that say what to do.
var (
	// ErrNoText says that something is linked whose licence has no text.
	ErrNoText = errors.New("no licence text")
	// ErrUnused says that a text was given for something that is not linked.
	ErrUnused = errors.New("not linked")
)

// Options say where texts are. Places are needed.
type Options struct {
	modcache.Places
	// Own is the licence of the program itself, nil for none. It comes first.
	Own []byte
	// Given has texts for modules that have none, or that came from a folder, by
	// the paths of the modules; "std" is the standard library.
	Given map[string][]byte
}

// linked is a module, or the standard library, with its texts.
type linked struct {
	path, version, license string
	texts                  []modcache.Text
}

// Collect returns the text for executables that were read with [sbom.ReadFile],
// licences included. Executables of several platforms give one text for all of
// them. It fails for everything that has no text at once: the errors are
// [ErrNoText], [ErrUnused], [sbom.ErrNoBuildInfo], and those of [modcache.Texts].
func Collect(opts Options, executables ...sbom.Executable) ([]byte, error) {
	all, err := listed(executables)
	if err != nil {
		return nil, err
	}
	var problems []error
	for i := range all {
		if all[i].texts, err = opts.texts(all[i]); err != nil {
			problems = append(problems, err)
		}
	}
	for path := range opts.Given {
		if !slices.ContainsFunc(all, func(l linked) bool { return l.path == path }) {
			problems = append(problems, fmt.Errorf("%w: %s, for which a text is given", ErrUnused, path))
		}
	}
	if len(problems) > 0 {
		slices.SortFunc(problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
		return nil, errors.Join(problems...)
	}
	return write(opts.Own, all), nil
}

// listed is everything that is linked, once, sorted; the standard library first.
func listed(executables []sbom.Executable) ([]linked, error) {
	if len(executables) == 0 {
		return nil, fmt.Errorf("%w: no executable is given", sbom.ErrNoBuildInfo)
	}
	var all []linked
	for _, exe := range executables {
		if exe.GoVersion == "" {
			return nil, fmt.Errorf("%s: %w", exe.Name, sbom.ErrNoBuildInfo)
		}
		goVersion, _, _ := strings.Cut(exe.GoVersion, " ")
		all = append(all, linked{path: standard, version: goVersion, license: "BSD-3-Clause"})
		for _, m := range exe.Modules {
			all = append(all, linked{path: m.Path, version: m.Version, license: m.License})
		}
	}
	slices.SortFunc(all, func(a, b linked) int {
		return cmp.Or(cmp.Compare(rank(a.path), rank(b.path)), cmp.Compare(a.path, b.path), cmp.Compare(a.version, b.version))
	})
	return slices.CompactFunc(all, func(a, b linked) bool { return a.path == b.path && a.version == b.version }), nil
}

func rank(path string) int {
	if path == standard {
		return 0
	}
	return 1
}

// texts finds the texts of one module.
func (o Options) texts(l linked) ([]modcache.Text, error) {
	if given, ok := o.Given[l.path]; ok {
		return []modcache.Text{{Name: "LICENSE", License: true, Content: given}}, nil
	}
	if l.path == standard {
		// The whole tree has texts of code that only tests and tools use.
		texts, err := rootTexts(o.GoRoot)
		if err != nil || !slices.ContainsFunc(texts, func(t modcache.Text) bool { return t.License }) {
			return nil, fmt.Errorf("%w: the standard library of %s: there is no LICENSE in GOROOT, %s", ErrNoText, l.version, o.GoRoot)
		}
		return texts, nil
	}
	if l.version == "" {
		return nil, fmt.Errorf("%w: %s: it comes from a folder, and not from the module cache", ErrNoText, l.path)
	}
	root, err := modcache.Open(o.ModuleCache, l.path, l.version)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s@%s: it is not in the module cache %s", ErrNoText, l.path, l.version, o.ModuleCache)
	}
	if err != nil {
		return nil, fmt.Errorf("%s@%s: %w", l.path, l.version, err)
	}
	defer root.Close() //nolint:errcheck // read only
	texts, err := modcache.Texts(root.FS())
	if err != nil {
		return nil, fmt.Errorf("%s@%s: %w", l.path, l.version, err)
	}
	if !slices.ContainsFunc(texts, func(t modcache.Text) bool { return t.License && len(bytes.TrimSpace(t.Content)) > 0 }) {
		return nil, fmt.Errorf("%w: %s@%s: its folder has no file such as LICENSE or COPYING", ErrNoText, l.path, l.version)
	}
	return texts, nil
}

// rootTexts are the texts in the folder itself.
func rootTexts(dir string) ([]modcache.Text, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // read only
	return modcache.RootTexts(root.FS())
}

const rule = "--------------------------------------------------------------------------------\n"

// tableHead begins the table, which a blank line ends.
const tableHead = "Module, version, licence:"

// write makes the text: what is linked, where source is, and each text once.
func write(own []byte, all []linked) []byte {
	var b bytes.Buffer
	b.WriteString("The licences of this program and of everything that is linked into it\n\n")
	b.WriteString("The list is that of the program's build information (go version -m); std is the\nGo standard library. Below it are the licences, notices and patents of all, each\ntext once.\n\n")
	b.WriteString(tableHead + "\n")
	for _, l := range all {
		fmt.Fprintf(&b, "%s %s %s\n", l.path, cmp.Or(l.version, "-"), cmp.Or(l.license, unknown))
	}
	b.WriteByte('\n')
	writeSources(&b, all)
	if len(own) > 0 {
		section(&b, []string{"this program"}, own)
	}
	var order []string
	owners := map[string][]string{}
	for _, l := range all {
		for _, text := range l.texts {
			content := normal(text.Content)
			if owners[content] == nil {
				order = append(order, content)
			}
			owners[content] = append(owners[content], l.path+" "+cmp.Or(l.version, "-")+": "+text.Name)
		}
	}
	for _, content := range order {
		section(&b, owners[content], []byte(content))
	}
	return b.Bytes()
}

// writeSources says where the source is of what is under a licence that gives a
// right to it. The Mozilla Public License 2.0 wants that in 3.2.
func writeSources(b *bytes.Buffer, all []linked) {
	var lines []string
	for _, l := range all {
		// Of a choice, the other licence is taken.
		if strings.Contains(l.license, " OR ") || !slices.ContainsFunc([]string{"MPL-", "GPL-", "EPL-", "CDDL-", "EUPL-"}, func(family string) bool { return strings.Contains(l.license, family) }) {
			continue
		}
		line := l.path + " " + cmp.Or(l.version, "-")
		path, pathErr := module.EscapePath(l.path)
		version, versionErr := module.EscapeVersion(l.version)
		if pathErr == nil && versionErr == nil && l.version != "" {
			line += "\n  https://proxy.golang.org/" + path + "/@v/" + version + ".zip"
		}
		lines = append(lines, line+"\n")
	}
	if len(lines) == 0 {
		return
	}
	b.WriteString("The source code of these is available to you under the terms of their licences:\nfrom the repository that the module's path names, at the tag that its version\nnames, or as the archive below. Each is linked as it is there, unchanged.\n\n")
	for _, line := range lines {
		b.WriteString(line)
	}
	b.WriteByte('\n')
}

func section(b *bytes.Buffer, owners []string, content []byte) {
	b.WriteString(rule)
	b.WriteString(strings.Join(owners, "\n") + "\n" + rule + "\n")
	b.WriteString(normal(content) + "\n\n")
}

// normal is a text with Unix line ends and without blank ends, so that copies of
// one text are the same.
func normal(content []byte) string {
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
