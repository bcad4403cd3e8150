package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// narrow runs a command on a terminal of so many columns.
func narrow(t *testing.T, columns int, args ...string) string {
	t.Helper()
	var out strings.Builder
	app := cli.New(nil, &out, &out, nil)
	app.OutTerminal.Columns, app.ErrTerminal.Columns = columns, columns
	app.Run(t.Context(), NewRootCmd(app), args)
	return out.String()
}

// checkFits reports lines that are wider than the terminal and could be broken. What is
// to be copied, a command or a word such as a digest, is in one line.
func checkFits(t *testing.T, columns int, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line) <= columns || strings.Contains(line, "next: ") || strings.HasPrefix(line, "  fleeting-plugin ") || strings.Contains(line, "$TOKEN") || strings.Contains(line, "COSIGN_PASSWORD=") {
			continue
		}
		words := strings.Fields(line)
		if last := words[len(words)-1]; utf8.RuneCountInString(last) < columns-24 {
			t.Errorf("%d columns: %q", columns, line)
		}
	}
}

// TestTerminal holds that what commands say fits a terminal of 80 and of 60
// columns, and that nothing is ever cut.
func TestTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const name = "registry.example.com/a-group-with-a-long-name/fleeting-plugin-example"
	at := filepath.Join(dir, filepath.FromSlash(name), "1.2.3")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, []byte("[[runners]]\nname = \"one\"\n[runners.autoscaler]\nplugin = \""+name+":1\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"list", "--dir", dir}, {"doctor", "--config", config, "--dir", dir}, {"verify", "--installed", "--dir", dir}, {"policy", "check"},
	} {
		for _, columns := range []int{60, 80, 0} {
			text := narrow(t, columns, args...)
			if args[0] != "policy" && !strings.Contains(text, name) || strings.Contains(text, "…") {
				t.Errorf("%v: %d columns: cut:\n%s", args, columns, text)
			}
			if columns > 0 {
				checkFits(t, columns, text)
			}
		}
	}
}

// TestHelpFits: the help of every command.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		for _, columns := range []int{60, 80} {
			text := narrow(t, columns, args...)
			if !strings.Contains(text, "Usage:") {
				t.Errorf("%v: no help: %s", args, text)
			}
			checkFits(t, columns, text)
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(NewRootCmd(cli.New(nil, nil, nil, nil)))
}
