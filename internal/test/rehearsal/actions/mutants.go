package actions

import (
	"fmt"
	"slices"
	"strings"
)

// Mutants returns ways to break a workflow: one for each line that is left out with
// what belongs to it, and for each step that fails, does nothing or changes places
// with the next. Their names are "JOB: WHAT: line N: LINE". What a run in which all
// is well does not depend on, and steps that need nothing of the next, are not among
// them.
func Mutants(content []byte) map[string][]byte {
	spared := []string{
		"if-no-files-found: error", "name: release",
		"build: comes later: - run: make release-look", "check: comes later: - uses: actions/download-artifact",
		"publish: comes later: - uses: actions/setup-go", "check: comes later: - uses: actions/setup-go",
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(content), "\n"), "\n")
	mutants := map[string][]byte{}
	job := ""
	add := func(what string, i int, parts ...[]string) {
		name, _, _ := strings.Cut(strings.TrimSpace(lines[i]), " # ")
		if slices.ContainsFunc(spared, func(line string) bool { return strings.Contains(job+": "+what+": "+name, line) }) {
			return
		}
		mutants[fmt.Sprintf("%s: %s: line %d: %s", job, what, i+1, name)] = []byte(strings.Join(slices.Concat(parts...), ""))
	}
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		if indent(line) == 2 && !strings.HasPrefix(trimmed, "push:") {
			job = strings.TrimSuffix(trimmed, ":")
		}
		n := blockEnd(lines, i)
		add("without", i, lines[:i], lines[n:])
		if !strings.HasPrefix(trimmed, "- ") {
			continue
		}
		add("fails", i, lines[:i], []string{"      - run: exit 1\n"}, lines[n:])
		add("does nothing", i, lines[:i], []string{"      - run: make\n"}, lines[n:])
		if n < len(lines) && strings.HasPrefix(lines[n], "      - ") {
			next := blockEnd(lines, n)
			add("comes later", i, lines[:i], lines[n:next], lines[i:n], lines[next:])
		}
	}
	return mutants
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// blockEnd returns the line behind what belongs to a line.
func blockEnd(lines []string, i int) int {
	n := i + 1
	for n < len(lines) && (strings.TrimSpace(lines[n]) == "" || indent(lines[n]) > indent(lines[i])) {
		n++
	}
	return n
}
