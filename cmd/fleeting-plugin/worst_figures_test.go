package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// measuredProgram is run in place of this test's own program.
var measuredProgram = flag.String("executable", "", "the fleeting-plugin to run in TestWorstArtifacts")

// What TestWorstArtifacts measured is written to a page by `make worst`.
const (
	worstPage  = "../../docs/reference/limits.md"
	worstBegin = "<!-- Written by `make worst` from here; do not edit. -->\n"
	worstEnd   = "<!-- Written by `make worst` up to here. -->\n"
)

// usage is what a command took.
type usage struct {
	Code int
	CPU  time.Duration
	Peak int64 // MiB
	// message is all that the command wrote.
	message string
}

// measureTo is the variable with the file that [runMeasured] writes to.
const measureTo = "TEST_MEASURE_TO"

// runMeasured is a program of its own that runs another: the memory that the system
// counts for a process begins with that of the process that started it, which in a
// test is large.
func runMeasured() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...) //nolint:noctx // ends with its test
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		panic(err)
	}
	state := cmd.ProcessState
	content, err := json.Marshal(usage{Code: state.ExitCode(), CPU: state.UserTime() + state.SystemTime(), Peak: peakMemory(state)})
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(os.Getenv(measureTo), content, 0o600); err != nil {
		panic(err)
	}
}

// runWorst runs fleeting-plugin.
func runWorst(t *testing.T, args ...string) usage {
	t.Helper()
	program := *measuredProgram
	if program == "" {
		program = "fleeting-plugin"
	}
	to := filepath.Join(t.TempDir(), "usage")
	cmd := exec.CommandContext(t.Context(), "measured", append([]string{program}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), measureTo+"="+to)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	var u usage
	if err := json.Unmarshal(content, &u); err != nil {
		t.Fatal(err)
	}
	u.message = string(out)
	return u
}

// worstRow is one artifact, with the figures of each command.
type worstRow struct {
	name    string
	figures map[string]string
}

// writeWorst writes the figures to their page.
func writeWorst(t *testing.T, rows []worstRow) {
	t.Helper()
	if *measuredProgram == "" {
		t.Fatal("the figures are those of the program as it is built: -executable FILE")
	}
	commands := []string{"verify", "inspect", "mirror", "resolve"}
	var b strings.Builder
	fmt.Fprintf(&b, "\nProcessor time, peak memory and requests, measured on %s/%s with %s.\n\n", runtime.GOOS, runtime.GOARCH, runtime.Version())
	fmt.Fprintf(&b, "| artifact | `%s` |\n|%s\n", strings.Join(commands, "` | `"), strings.Repeat(" --- |", len(commands)+1))
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |", row.name)
		for _, command := range commands {
			if row.figures[command] == "" {
				t.Fatalf("%s, %s: not measured", row.name, command)
			}
			fmt.Fprintf(&b, " %s |", row.figures[command])
		}
		b.WriteByte('\n')
	}
	page, err := os.ReadFile(worstPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), worstBegin)
	_, after, ended := strings.Cut(rest, worstEnd)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", worstPage)
	}
	if err := os.WriteFile(worstPage, []byte(before+worstBegin+b.String()+"\n"+worstEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
