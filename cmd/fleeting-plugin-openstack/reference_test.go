package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestReferenceShowsTheHelp: the page about the commands shows what they print
// about themselves.
func TestReferenceShowsTheHelp(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/fleeting-plugin-openstack.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--help"}, {"check", "--help"}, {"plan", "--help"}, {"list", "--help"}} {
		var out, errs bytes.Buffer
		if code := runForPeople(t.Context(), args, &out, &errs); code != exitOK {
			t.Fatalf("%v: exit code %d: %s", args, code, errs.String())
		}
		help := out.String()
		if _, flags, ok := strings.Cut(errs.String(), "Flags:\n"); ok {
			help = flags
		}
		if help == "" || !strings.Contains(string(page), "\n"+help+"```\n") {
			t.Errorf("%v: the page does not show\n%s", args, help)
		}
	}
}
