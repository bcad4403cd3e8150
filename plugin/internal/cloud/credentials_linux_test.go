package cloud

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// nobody is a user who owns no file of ours.
const nobody = 65534

// TestStampTellsWhetherFilesCanBeRead: what was not readable is tried again once
// it is, whether its mode or its owner was put right.
func TestStampTellsWhetherFilesCanBeRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, dir := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files := cloudsFiles{clouds: filepath.Join(folder, "clouds.yaml")}
	if err := os.WriteFile(files.clouds, []byte("clouds: {}"), 0o600); err != nil {
		t.Fatal(err)
	}
	readable := files.stamp()
	if err := os.Chmod(files.clouds, 0); err != nil {
		t.Fatal(err)
	}
	done := make(chan string)
	go func() {
		defer close(done)
		// Root may read everything, so for the files this thread, which ends with
		// the goroutine, is somebody else; nobody but root can do that, or has to.
		runtime.LockOSThread()
		_ = syscall.Setfsuid(nobody)
		done <- files.stamp()
	}()
	unreadable := <-done
	if unreadable == "" || unreadable == readable {
		t.Errorf("the stamp of a file that cannot be read is that of one that can: %q", unreadable)
	}
	if err := os.Chmod(files.clouds, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := files.stamp(); again != readable {
		t.Errorf("readable again: %q, want %q", again, readable)
	}
}
