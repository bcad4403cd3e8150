package dist_test

import (
	"os"
	"testing"
)

// notAFile makes a folder: pipes are not in folders there.
func notAFile(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func unixInput() []badInput { return nil }
