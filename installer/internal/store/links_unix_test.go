//go:build !windows

package store_test

import (
	"os"
	"testing"
)

// link makes a link at path to dir.
func link(t *testing.T, dir, path string) {
	t.Helper()
	if err := os.Symlink(dir, path); err != nil {
		t.Fatal(err)
	}
}
