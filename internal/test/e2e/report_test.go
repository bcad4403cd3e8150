//go:build e2e

package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"text/tabwriter"
	"time"
)

// report collects what ran: which software did what, in which time, and how it
// ended.
type report struct {
	rows []row
}

type row struct {
	software, what string
	took           time.Duration
	passed         bool
}

// check runs one row of the report as a test.
func (r *report) check(t *testing.T, software, what string, do func(t *testing.T)) {
	t.Helper()
	mustGoOn(t)
	start := time.Now()
	ran := false
	passed := t.Run(what, func(t *testing.T) {
		ran = true
		do(t)
	})
	if ran { // and was not left out by -run
		r.rows = append(r.rows, row{software, what, time.Since(start), passed})
	}
}

// print writes the table to the test's log, and to the file that E2E_REPORT
// names.
func (r *report) print(t *testing.T) {
	t.Helper()
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SOFTWARE\tCASE\tSECONDS\tVERDICT")
	for _, row := range r.rows {
		verdict := "ok"
		if !row.passed {
			verdict = "FAILED"
		}
		fmt.Fprintf(table, "%s\t%s\t%.1f\t%s\n", row.software, row.what, row.took.Seconds(), verdict)
	}
	if err := table.Flush(); err != nil {
		t.Error(err)
	}
	t.Logf("%d cases\n%s", len(r.rows), text.String())
	if file := os.Getenv("E2E_REPORT"); file != "" {
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Error(err)
		}
	}
}
