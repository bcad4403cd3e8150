package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBeneath takes a folder beneath the tree of an image, again and again: what
// is there already changes nothing, and neither does a drive.
func TestBeneath(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	deep := filepath.Join(tree, "etc", "gitlab-runner", "plugins")
	for _, dir := range []string{"/etc/gitlab-runner/plugins", "etc/gitlab-runner/plugins", filepath.VolumeName(tree) + "/etc/gitlab-runner/plugins", "/../etc/./gitlab-runner/plugins/"} {
		for range 2 {
			got, err := beneath(tree, filepath.FromSlash(dir))
			if err != nil || got != deep {
				t.Errorf("%s: %q, %v; want %s", dir, got, err, deep)
			}
			if err := os.MkdirAll(deep, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, err := beneath(tree, string(filepath.Separator)); err != nil || got != tree {
		t.Errorf("the tree itself: %q, %v", got, err)
	}
}
