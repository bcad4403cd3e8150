package roff_test

import (
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/roff"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"--config":     `\-\-config`,
		`a\b`:          `a\eb`,
		".hidden":      `\&.hidden`,
		"a\n'quoted'":  "a\n\\&'quoted'",
		"in the .text": "in the .text",
	} {
		if got := roff.Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}
