package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestManual: the page has every command and flag, each escaped, and nothing
// that a reader of manual pages would take for a macro it does not know.
func TestManual(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := runForPeople(t.Context(), []string{"man"}, &out, &errs); code != exitOK || errs.Len() > 0 {
		t.Fatalf("code %d, errors %q", code, errs.String())
	}
	page := out.String()
	for name, c := range commands() {
		if !strings.Contains(page, ".B "+name+"\n") || !strings.Contains(page, strings.ReplaceAll(c.summary, "-", `\-`)) {
			t.Errorf("%s is not in the page", name)
		}
	}
	for _, flag := range []string{`\-\-config file`, `\-\-runner name`, `\-\-output format`, `\-\-yes`} {
		if !strings.Contains(page, ".B "+flag) {
			t.Errorf("%s is not in the page", flag)
		}
	}
	for line := range strings.Lines(page) {
		macro, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(macro, ".") && !strings.Contains(".TH.SH.TP.B", macro) {
			t.Errorf("macro %s", macro)
		}
	}
}
