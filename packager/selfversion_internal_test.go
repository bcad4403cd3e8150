package packager

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestExecutableThatNeverAnswers also leaves a child with the output open, which
// must not outlive it.
func TestExecutableThatNeverAnswers(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"hangs":           "#!/bin/sh\nexec 3<>\"$0.pipe\"\nsleep 50 &\nsleep 50\n",
		"leaves a child":  "#!/bin/sh\nexec 3<>\"$0.pipe\"\nsleep 50 &\n",
		"writes for ever": "#!/bin/sh\nexec yes\n",
	} {
		path := filepath.Join(t.TempDir(), "plugin")
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path+".pipe", 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := run(t.Context(), path, 5*time.Second)
		if err == nil || len(out) > versionLimit {
			t.Errorf("%s: %d bytes, error %v", name, len(out), err)
		}
		if name == "hangs" && !strings.Contains(err.Error(), "more than 5s") {
			t.Errorf("%s: error %v", name, err)
		}
		nobodyHolds(t, path+".pipe")
	}
}

// nobodyHolds waits until no process has a named pipe open any more, each of
// which writes to it as well as reads from it.
func nobodyHolds(t *testing.T, pipe string) {
	t.Helper()
	for range 1000 {
		// Without a reader, a pipe cannot be opened for writing alone.
		fd, err := syscall.Open(pipe, syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return
		}
		_ = syscall.Close(fd)
		select {
		case <-t.Context().Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("a child outlived the executable")
}
