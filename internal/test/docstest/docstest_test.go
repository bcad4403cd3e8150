package docstest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../../.."

func pages(t *testing.T) []string {
	t.Helper()
	found, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(found, "README.md") {
		t.Fatalf("README.md is not among the pages: %v", found)
	}
	return found
}

func TestLinksResolve(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		links, err := Links(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			target := page
			if link.Target != "" {
				target = path.Join(path.Dir(page), link.Target)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s:%d: %s does not exist", link.File, link.Line, link.Target)
				continue
			}
			if link.Fragment == "" || path.Ext(target) != ".md" {
				continue
			}
			anchors, err := Anchors(root, target)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(anchors, link.Fragment) {
				t.Errorf("%s:%d: %s has no heading #%s", link.File, link.Line, target, link.Fragment)
			}
		}
	}
}

// TestEveryPageIsReachable: a page that no other links to is not read.
func TestEveryPageIsReachable(t *testing.T) {
	t.Parallel()
	linked := map[string]bool{"README.md": true}
	all := pages(t)
	for _, page := range all {
		links, err := Links(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			linked[path.Join(path.Dir(page), link.Target)] = true
		}
	}
	for _, page := range all {
		if !linked[page] && !strings.HasPrefix(page, ".github/") {
			t.Errorf("no page links to %s", page)
		}
	}
}

func TestMakeTargetsExist(t *testing.T) {
	t.Parallel()
	targets := func(pattern string, files ...string) (found []string) {
		for _, file := range files {
			makefile, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(makefile), -1) {
				found = append(found, match[1])
			}
		}
		return found
	}
	ours := targets(`(?m)^([a-z0-9-]+):.*## `, "Makefile", "release.mk")
	templates := targets(`(?m)^([a-z0-9-]+):`, "docs/template/Makefile")
	seen := 0
	for _, page := range pages(t) {
		blocks, err := Blocks(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks {
			for _, command := range block.Commands() {
				words := Words(command)
				if len(words) == 0 || words[0] != "make" {
					continue
				}
				for _, word := range words[1:] {
					seen++
					there := ours
					if strings.HasPrefix(page, "docs/template/") {
						there = templates
					}
					if !strings.Contains(word, "=") && !slices.Contains(there, word) {
						t.Errorf("%s: make has no target %s", block.Where(), word)
					}
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no page says make at all")
	}
}

func TestParseBlocks(t *testing.T) {
	t.Parallel()
	page := strings.Join([]string{
		"# T", "```sh", "# a comment", `fleeting-plugin install \`, "  x:1 # why", "```",
		"1. item", "   ```console", "   $ make demo", "   output", "   ```", "````toml", "a = 1", "```", "````",
	}, "\n")
	got, err := parseBlocks("p.md", page)
	if err != nil {
		t.Fatal(err)
	}
	want := []Block{
		{"p.md", 2, "sh", "# a comment\nfleeting-plugin install \\\n  x:1 # why\n"},
		{"p.md", 8, "console", "$ make demo\noutput\n"},
		{"p.md", 12, "toml", "a = 1\n```\n"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("blocks (-want +got):\n%s", diff)
	}
	var commands [][]string
	for _, block := range got {
		for _, command := range block.Commands() {
			commands = append(commands, Words(command))
		}
	}
	wantCommands := [][]string{{"fleeting-plugin", "install", "x:1"}, {"make", "demo"}}
	if diff := cmp.Diff(wantCommands, commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if _, err := parseBlocks("p.md", "```sh\nx\n"); err == nil {
		t.Error("a block that is not closed: no error")
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		`a 'b c' "d e" f\ g`: {"a", "b c", "d e", "f g"},
		`a "" b`:             {"a", "", "b"},
		`a | b`:              {"a"},
		`a > b`:              {"a"},
		`a && b`:             {"a"},
		`a # b`:              {"a"},
		`a x#b`:              {"a", "x#b"},
		`a '\'`:              {"a", `\`},
		``:                   nil,
	} {
		if diff := cmp.Diff(want, Words(line)); diff != "" {
			t.Errorf("Words(%s) (-want +got):\n%s", line, diff)
		}
	}
}

func TestParseLinks(t *testing.T) {
	t.Parallel()
	got := parseLinks("p.md", "[a](b.md#c) [d](https://e.test)\n```\n[f](g)\n```\n[h](#i)\n")
	want := []Link{{"p.md", 1, "b.md", "c"}, {"p.md", 5, "", "i"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if got := anchor("Install, and `verify` it"); got != "install-and-verify-it" {
		t.Errorf("anchor = %q", got)
	}
}
