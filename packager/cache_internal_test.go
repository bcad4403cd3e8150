package packager

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// companion returns a layer with one file, as scanned at a time after the file
// was written.
func companion(t *testing.T, path string, after time.Duration) layer {
	t.Helper()
	f, err := regular(path, "plugin")
	if err != nil {
		t.Fatal(err)
	}
	p, err := artifact.ParsePlatform("linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	last := time.Unix(0, max(f.found.changed, f.found.modified))
	return layer{in: input{platform: p, files: []file{f}}, sums: &sums{scanned: last.Add(after)}}
}

// TestCacheBelievesFilesThatDidNotChange also says when it does not: everything
// but the untouched file is read again.
func TestCacheBelievesFilesThatDidNotChange(t *testing.T) {
	t.Parallel()
	rewrite := func(content string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			// As tools do that keep a file's time.
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		first, second time.Duration // between the change and the scan
		change        func(*testing.T, string)
		known, read   bool
	}{
		"untouched":                  {first: time.Minute, second: time.Minute, known: true},
		"first scan too early":       {first: time.Millisecond, second: time.Minute, known: true, read: true},
		"second scan too early":      {first: time.Minute, second: time.Millisecond, known: true, read: true},
		"other content, same time":   {first: time.Minute, second: time.Minute, change: rewrite("other"), read: true},
		"written again, same inside": {first: time.Minute, second: time.Minute, change: rewrite("first"), known: true, read: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "plugin")
			if err := os.WriteFile(path, []byte("first"), 0o600); err != nil {
				t.Fatal(err)
			}
			cache := layerCache{dir: t.TempDir()}
			first := companion(t, path, c.first)
			if _, err := first.sums.of(t.Context(), first.in.files[0]); err != nil {
				t.Fatal(err)
			}
			cache.set(first, layerRecord{Digest: digest.FromString("layer"), Size: 5, DiffID: digest.FromString("tar")})
			if c.change != nil {
				c.change(t, path)
			}
			second := companion(t, path, c.second)
			if read := second.reads(t, cache, c.known); read != (c.read || runtime.GOOS != "linux" && runtime.GOOS != "darwin") {
				t.Errorf("file read: %t, want %t", read, c.read)
			}
		})
	}
}

// reads says whether the cache reads the layer's file to know it. A context
// that is over stops all reading.
func (l layer) reads(t *testing.T, cache layerCache, want bool) bool {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, known, err := cache.get(over, l)
	if err == nil && known {
		return false
	}
	if _, known, err = cache.get(t.Context(), l); err != nil || known != want {
		t.Errorf("known = %t, want %t (%v)", known, want, err)
	}
	return true
}

// TestFileIsTheOneThatWasChecked changes a file while nobody reads it.
func TestFileIsTheOneThatWasChecked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := companion(t, path, time.Minute)
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	future := time.Unix(0, l.in.files[0].found.modified).Add(time.Hour)
	if err := os.Chtimes(path, future, future); err != nil {
		t.Fatal(err)
	}
	err := l.sums.copy(t.Context(), io.Discard, l.in.files[0], make([]byte, 10))
	if err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("error = %v", err)
	}
}
