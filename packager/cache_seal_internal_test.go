package packager

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// TestSealedRecords: only what was remembered, for this layer, by one who has
// the key, decides what is published.
func TestSealedRecords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key    string // with which it is read
		change func(*testing.T, layerCache, layer, layer)
		known  bool
	}{
		"as it was": {key: "key", change: func(*testing.T, layerCache, layer, layer) {}, known: true},
		"other key": {key: "other", change: func(*testing.T, layerCache, layer, layer) {}},
		"no key":    {key: "", change: func(*testing.T, layerCache, layer, layer) {}},
		"fields of another platform's": {key: "key", change: func(t *testing.T, c layerCache, l, other layer) {
			t.Helper()
			mine, theirs := stored(t, c, l), stored(t, c, other)
			mine.Digest, mine.Size, mine.DiffID = theirs.Digest, theirs.Size, theirs.DiffID
			keep(t, c, l, mine)
		}},
		"another platform's": {key: "key", change: func(t *testing.T, c layerCache, l, other layer) {
			t.Helper()
			keep(t, c, l, stored(t, c, other))
		}},
		"another executable's": {key: "key", change: func(t *testing.T, c layerCache, l, _ layer) {
			t.Helper()
			r := stored(t, c, l)
			r.Files[0].SHA256 = digest.FromString("evil").Encoded()
			keep(t, c, l, r)
		}},
		"sealed by one without the key": {key: "key", change: func(t *testing.T, c layerCache, l, _ layer) {
			t.Helper()
			r := stored(t, c, l)
			r.Digest = digest.FromString("evil")
			var err error
			if r.Seal, err = (layerCache{dir: c.dir}).seal(l, r); err != nil {
				t.Fatal(err)
			}
			keep(t, c, l, r)
		}},
		"no seal": {key: "key", change: func(t *testing.T, c layerCache, l, _ layer) {
			t.Helper()
			r := stored(t, c, l)
			r.Seal = nil
			keep(t, c, l, r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "plugin")
			if err := os.WriteFile(path, []byte("same size"), 0o600); err != nil {
				t.Fatal(err)
			}
			cache := layerCache{dir: t.TempDir(), key: []byte("key")}
			l, other := companion(t, path, time.Minute), companion(t, path, time.Minute)
			var err error
			if other.in.platform, err = artifact.ParsePlatform("linux/arm64"); err != nil {
				t.Fatal(err)
			}
			for _, l := range []layer{l, other} {
				if _, err := l.sums.of(t.Context(), l.in.files[0]); err != nil {
					t.Fatal(err)
				}
				text := l.in.platform.String()
				cache.set(l, layerRecord{Digest: digest.FromString(text), Size: int64(len(text)), DiffID: digest.FromString("tar " + text)})
			}
			c.change(t, cache, l, other)
			_, known, err := layerCache{dir: cache.dir, key: []byte(c.key)}.get(t.Context(), l)
			if err != nil || known != c.known {
				t.Errorf("known: got %t (%v), want %t", known, err, c.known)
			}
		})
	}
}

func stored(t *testing.T, c layerCache, l layer) layerRecord {
	t.Helper()
	raw, err := os.ReadFile(c.path(l))
	if err != nil {
		t.Fatal(err)
	}
	var r layerRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func keep(t *testing.T, c layerCache, l layer, r layerRecord) {
	t.Helper()
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.path(l), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestWriters: another version of the compressor, also by a replacement, is
// another writer.
func TestWriters(t *testing.T) {
	t.Parallel()
	const compress = "github.com/klauspost/compress"
	seen := map[string]string{}
	for name, dep := range map[string]*debug.Module{
		"old":      {Path: compress, Version: "v1.0.0", Sum: "h1:a"},
		"new":      {Path: compress, Version: "v1.0.1", Sum: "h1:b"},
		"replaced": {Path: compress, Version: "v1.0.1", Replace: &debug.Module{Path: "../fork"}},
		"none":     {Path: "example.com/other"},
	} {
		got := writers(&debug.BuildInfo{Deps: []*debug.Module{dep}}, true)
		if twin := seen[got]; twin != "" {
			t.Errorf("%s and %s are the same: %q", name, twin, got)
		}
		seen[got] = name
	}
}
