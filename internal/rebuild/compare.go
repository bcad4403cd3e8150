package rebuild

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// Comparison is the outcome for one executable.
type Comparison struct {
	// Same says that both files have the same bytes.
	Same bool `json:"same"`
	// Published and Rebuilt are digests, sha256:….
	Published string `json:"published"`
	Rebuilt   string `json:"rebuilt,omitempty"`
	// Command is the call of the go command that built it again.
	Command string `json:"command,omitempty"`
	// Notes say what was not built from source.
	Notes []string `json:"notes,omitempty"`
	// Differences explain what is not the same, the likeliest cause first.
	Differences []string `json:"differences,omitempty"`
	// UnknownFlags says that they differ, and that nobody tells the -ldflags that
	// the published one was linked with: those are to be found out first.
	UnknownFlags bool `json:"unknownFlags,omitempty"`
}

// Compare compares two executables byte by byte. If they differ, it compares
// what their Go build information says, and where there is none, or it is the
// same, says where the bytes part.
func Compare(published, rebuilt string) (Comparison, error) {
	return compare(published, rebuilt, Recipe{})
}

// compare puts the recipe's notes, likely causes, before what only says where.
// Without the linker flags nearly every section differs, and that says nothing.
func compare(published, rebuilt string, recipe Recipe) (Comparison, error) {
	var c Comparison
	var err error
	if c.Published, err = digestOf(published); err != nil {
		return c, err
	}
	if c.Rebuilt, err = digestOf(rebuilt); err != nil {
		return c, err
	}
	if c.Same = c.Published == c.Rebuilt; c.Same {
		return c, nil
	}
	a, errA := buildinfo.ReadFile(published)
	b, errB := buildinfo.ReadFile(rebuilt)
	if errA == nil && errB == nil {
		c.Differences = compareInfo(a, b)
	}
	if len(c.Differences) == 0 {
		c.Differences = slices.Clone(recipe.notes)
		c.UnknownFlags = recipe.unknownFlags
		if !c.UnknownFlags {
			c.Differences = append(c.Differences, whereDifferent(published, rebuilt))
		}
	}
	return c, nil
}

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// compareInfo lists what differs, causes before their effects: another Go
// version, other settings, other modules.
func compareInfo(published, rebuilt *debug.BuildInfo) []string {
	var found []string
	differ := func(what, a, b string) {
		if a != b {
			found = append(found, fmt.Sprintf("%s: published %s, rebuilt %s", what, orNone(a), orNone(b)))
		}
	}
	differ("Go version", published.GoVersion, rebuilt.GoVersion)
	differ("package", published.Path, rebuilt.Path)
	a, b := settingsOf(published), settingsOf(rebuilt)
	for _, key := range keys(a, b) {
		differ(key, a[key], b[key])
	}
	differ("version of "+published.Main.Path, published.Main.Version, rebuilt.Main.Version)
	a, b = modulesOf(published), modulesOf(rebuilt)
	for _, key := range keys(a, b) {
		differ("module "+key, a[key], b[key])
	}
	return found
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

func keys(a, b map[string]string) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func settingsOf(info *debug.BuildInfo) map[string]string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return settings
}

func modulesOf(info *debug.BuildInfo) map[string]string {
	modules := map[string]string{}
	for _, m := range info.Deps {
		text := m.Version + " " + m.Sum
		if m.Replace != nil {
			text += " replaced by " + m.Replace.Path + " " + m.Replace.Version + " " + m.Replace.Sum
		}
		modules[m.Path] = text
	}
	return modules
}

// whereDifferent says where two files part: in which sections of an ELF file,
// else at which byte.
func whereDifferent(published, rebuilt string) string {
	a, err := os.Open(published)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = a.Close() }()
	b, err := os.Open(rebuilt)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = b.Close() }()
	if sections := differentSections(a, b); len(sections) > 0 {
		return "the code or its linker flags: section " + firstOf(sections)
	}
	return fmt.Sprintf("the code or its linker flags: the first byte that differs is %d", commonLength(a, b))
}

// toldSections is how many of the sections that differ are named.
const toldSections = 3

// firstOf names some of them, as one changed line moves much that follows it.
func firstOf(sections []string) string {
	if more := len(sections) - toldSections; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(sections[:toldSections], ", "), more)
	}
	return strings.Join(sections, ", ")
}

// differentSections names the sections that only one ELF file has, or that are
// not the same; none for other formats.
func differentSections(a, b io.ReaderAt) []string {
	x, y := sectionsOf(a), sectionsOf(b)
	if x == nil || y == nil {
		return nil
	}
	var names []string
	for _, name := range keys(x, y) {
		if x[name] != y[name] {
			names = append(names, name)
		}
	}
	return names
}

// sectionsOf gives a digest of each section.
func sectionsOf(f io.ReaderAt) map[string]string {
	parsed, err := elf.NewFile(f)
	if err != nil {
		return nil
	}
	sections := map[string]string{}
	for _, s := range parsed.Sections {
		h := sha256.New()
		if s.Type != elf.SHT_NOBITS {
			if _, err := io.Copy(h, s.Open()); err != nil {
				return nil
			}
		}
		sections[s.Name] = hex.EncodeToString(h.Sum(nil))
	}
	return sections
}

// commonLength is how many bytes two files begin with alike.
func commonLength(a, b io.Reader) int64 {
	const block = 64 << 10
	ra, rb := bufio.NewReaderSize(a, block), bufio.NewReaderSize(b, block)
	var at int64
	for {
		x, errX := ra.Peek(block)
		y, errY := rb.Peek(block)
		n := min(len(x), len(y))
		if !bytes.Equal(x[:n], y[:n]) {
			i := 0
			for x[i] == y[i] {
				i++
			}
			return at + int64(i)
		}
		at += int64(n)
		if errX != nil || errY != nil {
			return at
		}
		_, _ = ra.Discard(n)
		_, _ = rb.Discard(n)
	}
}
