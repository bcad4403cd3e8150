package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// TestMain leaves nothing in the path: what check says must not depend on whether
// this machine has a gitlab-runner.
func TestMain(m *testing.M) {
	if err := os.Unsetenv("PATH"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestAsksTheRunnerForItsVersion: of the one in the path.
func TestAsksTheRunnerForItsVersion(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	for _, row := range []struct {
		says string
		code int
		want string
	}{{"Version:      17.9.0", 0, "17.9.0"}, {"Version:      17.9.0", 1, ""}, {"nothing", 0, ""}} {
		fakeRunner(t, folder, row.says, row.code)
		if got := runnerVersion(t.Context()); got != row.want {
			t.Errorf("%+v: %q", row, got)
		}
	}
	fakeRunner(t, folder, "Version:      17.9.0", 0)
	d := newDesk(t, goodServer)
	d.rewrite(t, "password = \"secret\"\n", "password = \"secret\"\nprotocol_port = 2222\n")
	if code, out, errs := d.run(t, "check"); code != exitFailed || !strings.Contains(out, "needs GitLab Runner 17.11.0 or later; 17.9.0 does not know it") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// fakeRunner writes a gitlab-runner that says one line, another one, and ends.
func fakeRunner(t *testing.T, folder, line string, code int) {
	t.Helper()
	name, script := "gitlab-runner", "#!/bin/sh\necho '%s'\necho 'Git revision: abc'\nexit %d\n"
	if runtime.GOOS == "windows" {
		name, script = "gitlab-runner.bat", "@echo off\r\necho %s\r\necho Git revision: abc\r\nexit %d\r\n"
	}
	if err := os.WriteFile(filepath.Join(folder, name), fmt.Appendf(nil, script, line, code), 0o700); err != nil { // #nosec G306 -- executable
		t.Fatal(err)
	}
}

func someFindings() []plugin.Finding {
	return []plugin.Finding{
		{Subject: "configuration", Detail: "group runner, tag fleeting:runner", OK: true},
		{Subject: "server.flavor", Detail: "no flavor is named \"m1.smal\" or has that ID; did you mean \"m1.small\"? There are many more of them."},
		{Subject: "concurrent", Detail: "2 jobs at a time, of the 3 that max_instances and capacity_per_instance allow", OK: true, Note: true},
		{Subject: "long", Detail: "https://cloud.example.com/a/path/that/has/no/blank/and/does/not/fit/into/any/terminal", OK: true},
	}
}

// TestFindingsFitTheTerminal: no line is longer than the terminal is wide, but for
// words that are, and the text is the same.
func TestFindingsFitTheTerminal(t *testing.T) {
	t.Parallel()
	words := func(text string) []string { return strings.Fields(text) }
	var whole strings.Builder
	writeFindings(&whole, someFindings(), screen{})
	if n := strings.Count(whole.String(), "\n"); n != len(someFindings()) {
		t.Errorf("without a terminal: %d lines:\n%s", n, &whole)
	}
	for _, columns := range []int{80, 60, 30, 10} {
		var out strings.Builder
		writeFindings(&out, someFindings(), screen{columns: columns})
		for line := range strings.Lines(out.String()) {
			line = strings.TrimRight(line, "\n")
			if utf8.RuneCountInString(line) > columns && columns >= 30 && !strings.Contains(line, "https://") {
				t.Errorf("%d columns: %q", columns, line)
			}
		}
		if diff := cmp.Diff(words(whole.String()), words(out.String())); diff != "" {
			t.Errorf("%d columns (-whole +wrapped):\n%s", columns, diff)
		}
	}
	var out strings.Builder
	writeFindings(&out, someFindings()[1:2], screen{columns: 60})
	const want = "WRONG  server.flavor  no flavor is named \"m1.smal\" or has\n" +
		"                      that ID; did you mean \"m1.small\"?\n" +
		"                      There are many more of them.\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("60 columns (-want +got):\n%s", diff)
	}
}

// TestMarksHaveColours: on a terminal only, and the columns stay.
func TestMarksHaveColours(t *testing.T) {
	t.Parallel()
	var coloured, plainText strings.Builder
	writeFindings(&coloured, someFindings(), screen{columns: 80, colours: true})
	writeFindings(&plainText, someFindings(), screen{columns: 80})
	for _, mark := range []string{red + "WRONG", yellow + "note", green + "ok"} {
		if !strings.Contains(coloured.String(), mark+plain) {
			t.Errorf("no %q in\n%s", mark, &coloured)
		}
	}
	without := strings.NewReplacer(red, "", yellow, "", green, "", plain, "").Replace(coloured.String())
	if diff := cmp.Diff(plainText.String(), without); diff != "" {
		t.Errorf("(-plain +coloured):\n%s", diff)
	}
	if got := screenOf(&coloured); got != (screen{}) {
		t.Errorf("what is no terminal: %+v", got)
	}
}

// TestAFindingStaysInItsLine: text of the cloud forges no other finding.
func TestAFindingStaysInItsLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	writeFindings(&out, []plugin.Finding{{Subject: "listing", Detail: "no\nok  server.image  fine \x1b[2J"}}, screen{})
	if strings.Count(out.String(), "\n") != 1 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}
}
