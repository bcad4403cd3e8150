package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

func check(ctx context.Context, c *call) error {
	findings, err := c.findings(ctx)
	if err != nil {
		return usageError{err}
	}
	if err := c.print(findings, func(w io.Writer) { writeFindings(w, findings, screenOf(c.out)) }); err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f plugin.Finding) bool { return !f.OK }) {
		return errNotOK
	}
	return nil
}

// findings looks at the file that was named: at all entries that use the plugin,
// or the one that was named, too.
func (c *call) findings(ctx context.Context) ([]plugin.Finding, error) {
	unseen := "whether a server accepts the login and has what jobs need, and the rest of config.toml"
	var findings []plugin.Finding
	if filepath.Ext(c.path) == ".json" {
		read, err := readPluginConfig(c.path)
		if err != nil {
			return nil, err
		}
		unseen = "connector_config and max_instances, which are in config.toml"
		findings = plugin.Check(ctx, read.raw, c.opts...)
	} else {
		file, entries, err := readEntries(c.path, c.runner)
		if err != nil {
			return nil, err
		}
		config := plugin.RunnerConfig{Path: c.path, Content: file, RunnerVersion: runnerVersion(ctx)}
		findings = plugin.CheckRunners(ctx, config, entries, otherEntries(file, entries), c.opts...)
	}
	return append(findings, plugin.Finding{Subject: "not looked at", Detail: unseen, OK: true, Note: true}), nil
}

// otherEntries are those that use the plugin and are not looked at.
func otherEntries(file map[string]any, looked []map[string]any) []map[string]any {
	all, _ := findEntries(file, "") // none are found where none uses the plugin by its name
	return slices.DeleteFunc(all, func(entry map[string]any) bool {
		return slices.ContainsFunc(looked, func(other map[string]any) bool {
			return fmt.Sprint(other) == fmt.Sprint(entry)
		})
	})
}

// runnerVersion asks the gitlab-runner in the path for its version; empty where
// there is none.
func runnerVersion(ctx context.Context) string {
	const patience = 10 * time.Second
	program, err := exec.LookPath("gitlab-runner")
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--version").Output() //nolint:gosec // the user's own path says which
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		if version, found := strings.CutPrefix(line, "Version:"); found {
			return strings.TrimSpace(version)
		}
	}
	return ""
}

// screen is what is known of where text goes.
type screen struct {
	columns int // 0 if it is no terminal
	colours bool
}

func screenOf(out io.Writer) screen {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return screen{}
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		columns = 0
	}
	// https://no-color.org: set to anything that is not empty.
	return screen{columns: columns, colours: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Colours of terminals, by ECMA-48.
const (
	red, yellow, green, plain = "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[0m"

	// columnGap is between the columns, and narrowest what details need at least.
	columnGap = 2
	narrowest = 20
)

// writeFindings writes a table whose last column is wrapped to the terminal. With
// several entries each has a heading.
func writeFindings(w io.Writer, findings []plugin.Finding, to screen) {
	runners := map[string]bool{}
	marks, widest := 0, 0
	for _, f := range findings {
		mark, _ := markOf(f)
		marks = max(marks, len(mark)+columnGap)
		if f.Runner != "" {
			runners[f.Runner] = true
		}
		widest = max(widest, utf8.RuneCountInString(f.Subject))
	}
	indent := marks + widest + columnGap
	below := ""
	if to.columns > 0 && to.columns-indent < narrowest { // then details stand below
		below, indent = "\n", marks
	}
	heading := ""
	for _, f := range findings {
		if len(runners) > 1 && f.Runner != heading {
			heading = f.Runner
			fmt.Fprintf(w, "\n%s\n", strings.TrimSpace("[[runners]] "+heading))
		}
		mark, colour := markOf(f)
		padding := strings.Repeat(" ", marks-len(mark))
		if to.colours {
			mark = colour + mark + plain
		}
		lines := []string{plaintext.Line(f.Detail)}
		if to.columns > 0 {
			lines = plaintext.Wrap(lines[0], to.columns-indent)
		}
		first := strings.Repeat(" ", indent)
		if below == "" {
			first = strings.Repeat(" ", widest-utf8.RuneCountInString(f.Subject)+columnGap)
		}
		fmt.Fprintf(w, "%s%s%s%s%s%s\n", mark, padding, f.Subject, below, first, strings.Join(lines, "\n"+strings.Repeat(" ", indent)))
	}
}

func markOf(f plugin.Finding) (mark, colour string) {
	switch {
	case !f.OK:
		return "WRONG", red
	case f.Note:
		return "note", yellow
	default:
		return "ok", green
	}
}
