package docstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGoSamples compiles each program of the documentation, as if it stood in this
// module. It does not vet: that would vet all that the program imports, too.
func TestGoSamples(t *testing.T) {
	t.Parallel()
	samples := blocks(t, "go")
	if len(samples) == 0 {
		t.Fatal("no program found")
	}
	for _, block := range samples {
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(block.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", "list", "-export", file)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", block.Where(), err, out)
		}
	}
}
