package packager

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestExecutableThatNeverAnswers also leaves a child with the output open.
func TestExecutableThatNeverAnswers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "plugin")
	for name, script := range map[string]string{
		"hangs":           "#!/bin/sh\nsleep 50 &\nsleep 50\n",
		"writes for ever": "#!/bin/sh\nexec yes\n",
	} {
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		out, err := run(t.Context(), path, 200*time.Millisecond)
		if err == nil || len(out) > versionLimit {
			t.Errorf("%s: %d bytes, error %v", name, len(out), err)
		}
		if name == "hangs" && !strings.Contains(err.Error(), "more than 200ms") {
			t.Errorf("%s: error %v", name, err)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
}
