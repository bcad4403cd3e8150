// Package docstest reads our documentation as a reader's shell would: it finds
// the fenced blocks in Markdown, the commands in them, and the links.
//
// It runs nothing. Tests use it to check that what the documentation says can
// be typed.
package docstest

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Block is a fenced block of a page.
type Block struct {
	// File is the page, relative to the root that was searched, with slashes.
	File string
	// Line is that of the fence, from 1.
	Line int
	// Language is the first word after the fence, such as sh or toml.
	Language string
	// Text is what stands between the fences.
	Text string
}

// Where names the place of the block, as file:line.
func (b Block) Where() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

// Pages lists the Markdown pages that users read, below root: the top level,
// docs and .github. The paths are relative to root, with slashes, sorted.
func Pages(root string) ([]string, error) {
	var pages []string
	for _, pattern := range []string{"*.md", ".github/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return nil, err
			}
			pages = append(pages, filepath.ToSlash(rel))
		}
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		rel, err := filepath.Rel(root, path)
		pages = append(pages, filepath.ToSlash(rel))
		return err
	})
	slices.Sort(pages)
	return pages, err
}

// Blocks returns the fenced blocks of a page below root.
func Blocks(root, page string) ([]Block, error) {
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		return nil, err
	}
	return parseBlocks(page, string(content))
}

func parseBlocks(page, content string) ([]Block, error) {
	var blocks []Block
	var open *Block
	var fence, indent string
	number := 0
	lines := bufio.NewScanner(strings.NewReader(content))
	for lines.Scan() {
		number++
		line := lines.Text()
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case open == nil && strings.HasPrefix(trimmed, "```"):
			indent = line[:len(line)-len(trimmed)]
			rest := strings.TrimLeft(trimmed, "`")
			fence = trimmed[:len(trimmed)-len(rest)]
			language, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			open = &Block{File: page, Line: number, Language: language}
		case open != nil && strings.TrimRight(trimmed, " ") == fence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the block is not closed", open.Where())
	}
	return blocks, lines.Err()
}

// Commands returns the command lines of a block of shell: without comments,
// prompts and the output below them; a backslash at the end joins lines. It
// returns none for blocks in other languages.
//
// In a block of language console, commands are the lines after a "$ ".
func (b Block) Commands() []string {
	if !slices.Contains([]string{"sh", "bash", "console"}, b.Language) {
		return nil
	}
	joined := strings.ReplaceAll(b.Text, "\\\n", " ")
	var commands []string
	for line := range strings.Lines(joined) {
		line = strings.TrimSpace(line)
		if b.Language == "console" {
			rest, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				continue
			}
			line = rest
		}
		if line != "" && !strings.HasPrefix(line, "#") {
			commands = append(commands, line)
		}
	}
	return commands
}

// Words takes a command line apart as a shell does, as far as documentation
// needs it: quotes and backslashes. Variables stay as they are written. A
// comment, a pipe, a redirection or a separator ends the words.
func Words(line string) []string {
	var w words
	for _, r := range line {
		if w.ends(r) {
			break
		}
		w.take(r)
	}
	w.flush()
	return w.done
}

// words is a command line that is being taken apart.
type words struct {
	done    []string
	word    strings.Builder
	started bool
	escaped bool
	quote   rune
}

// ends says whether the command ends before r.
func (w *words) ends(r rune) bool {
	if w.escaped || w.quote != 0 {
		return false
	}
	return strings.ContainsRune("|<>;&", r) || r == '#' && !w.started
}

func (w *words) take(r rune) {
	switch {
	case w.escaped:
		w.word.WriteRune(r)
		w.escaped = false
	case r == '\\' && w.quote != '\'':
		w.escaped, w.started = true, true
	case w.quote != 0:
		if r == w.quote {
			w.quote = 0
			return
		}
		w.word.WriteRune(r)
	case r == '\'' || r == '"':
		w.quote, w.started = r, true
	case r == ' ' || r == '\t':
		w.flush()
	default:
		w.word.WriteRune(r)
		w.started = true
	}
}

func (w *words) flush() {
	if w.started {
		w.done = append(w.done, w.word.String())
	}
	w.word.Reset()
	w.started = false
}

// Link is a link of a page to another place of the repository.
type Link struct {
	// File and Line say where it stands.
	File string
	Line int
	// Target is as written, without the fragment.
	Target string
	// Fragment is what follows "#", or "".
	Fragment string
}

// Links returns the relative links of a page below root, those in fenced blocks
// left out.
func Links(root, page string) ([]Link, error) {
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		return nil, err
	}
	return parseLinks(page, string(content)), nil
}

func parseLinks(page, content string) []Link {
	pattern := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	var links []Link
	fenced := false
	number := 0
	for line := range strings.Lines(content) {
		number++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		for _, match := range pattern.FindAllStringSubmatch(line, -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			target, fragment, _ := strings.Cut(match[1], "#")
			links = append(links, Link{File: page, Line: number, Target: target, Fragment: fragment})
		}
	}
	return links
}

// Anchors returns the fragments that a page's headings can be linked by.
func Anchors(root, page string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		return nil, err
	}
	var anchors []string
	fenced := false
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if title := strings.TrimLeft(line, "#"); !fenced && title != line && strings.HasPrefix(title, " ") {
			anchors = append(anchors, anchor(strings.TrimSpace(title)))
		}
	}
	return anchors, nil
}

// anchor makes a fragment of a heading, as GitHub and GitLab do.
func anchor(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r == ' ':
			b.WriteRune('-')
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
			b.WriteRune(r)
		}
	}
	return b.String()
}
