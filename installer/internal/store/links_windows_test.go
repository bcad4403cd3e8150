package store_test

import (
	"os/exec"
	"testing"
)

// link makes a junction at path to dir, which needs no privilege.
func link(t *testing.T, dir, path string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "cmd", "/c", "mklink", "/J", path, dir).CombinedOutput(); err != nil {
		t.Fatalf("mklink: %v: %s", err, out)
	}
}
