package rebuild

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTail: a build that writes without end is remembered by its end.
func TestTail(t *testing.T) {
	t.Parallel()
	var out tail
	for n := range 100_000 {
		if _, err := fmt.Fprintf(&out, "line %d\n", n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := out.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil || len(out) > 2*outputLimit || cap(out) > 4<<20 {
		t.Errorf("%d bytes of %d, %v", len(out), cap(out), err)
	}
	if !strings.HasSuffix(string(out), "xxx") {
		t.Error("it is not the end")
	}
}

// TestLargeFilesOfTheSource: what is read of a source before it is built is bounded,
// file by file.
func TestLargeFilesOfTheSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string, size int64) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600))
		if size > 0 && err == nil {
			err = os.Truncate(path, size) // takes no space
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const commit = "0123456789abcdef0123456789abcdef01234567"
	write("go.mod", "module example.com/plugin\n", 1<<30)
	write(".git/HEAD", commit+"\n", 0)
	write(".git/packed-refs", commit+" refs/tags/v1.0.0\nx refs/tags/none\n", 0)
	write(".git/refs/tags/v1.1.0", commit+"\n", 0)
	for n := range 50 {
		write(fmt.Sprintf(".git/refs/tags/large%d", n), strings.Repeat("x", 1000), 0)
	}
	if found, err := moduleDir(dir, "example.com/plugin"); !errors.Is(err, ErrOrigin) {
		t.Errorf("a go.mod of 1 GiB: %s, %v", found, err)
	}
	if r, ok := readRepository(dir); !ok || len(r.tags) != 2 {
		t.Errorf("tags: %v", r.tags)
	}
}
