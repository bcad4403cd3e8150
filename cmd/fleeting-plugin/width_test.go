package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// TestTerminal holds that what list and doctor say fits on a terminal of 80
// columns, and that nothing is cut where there is none, or with --no-trunc.
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
	run := func(columns int, args ...string) string {
		var out strings.Builder
		app := cli.New(nil, &out, nil, nil)
		app.Columns = columns
		app.Run(t.Context(), NewRootCmd(app), append(args, "--dir", dir))
		return out.String()
	}
	for _, args := range [][]string{{"list"}, {"doctor", "--config", config}, {"verify", "--installed"}} {
		for line := range strings.Lines(run(80, args...)) {
			// What doctor says is broken between words only: a path can be longer.
			words := len(strings.Fields(line))
			if columns := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); columns > 80 && (args[0] != "doctor" || words > 3 && !strings.Contains(line, "next: ")) {
				t.Errorf("%v: %d columns: %q", args, columns, line)
			}
		}
		for _, whole := range []string{run(0, args...), run(80, append(args, "--no-trunc")...)} {
			if !strings.Contains(whole, name) {
				t.Errorf("%v: without a limit the name is cut:\n%s", args, whole)
			}
		}
	}
	if got := run(80, "list"); !strings.Contains(got, "…") {
		t.Errorf("not cut:\n%s", got)
	}
}
