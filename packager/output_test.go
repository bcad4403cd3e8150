package packager_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestKilledPackIsCleared leaves what a process leaves that was killed: while it
// wrote, and between its last two steps.
func TestKilledPackIsCleared(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	out := filepath.Join(parent, "layout")
	first, err := packager.Pack(t.Context(), scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64")), version(t, "1.0.0"), out, packager.PackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	half := func() {
		sampleplugin.Write(t, filepath.Join(parent, ".layout.fleeting-plugin-new/blobs/half"), []byte("x"), 0o600)
		sampleplugin.Write(t, filepath.Join(parent, ".layout.fleeting-plugin.lock"), nil, 0o600)
	}
	half()
	sampleplugin.Write(t, filepath.Join(parent, ".other.fleeting-plugin-new/half"), []byte("x"), 0o600)
	second, err := packager.Pack(t.Context(), scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64")), version(t, "1.0.0"), out, packager.PackOptions{})
	if err != nil || second.Digest != first.Digest {
		t.Fatalf("%v, %v", second, err)
	}
	if diff := cmp.Diff([]string{".other.fleeting-plugin-new", "layout"}, names(t, parent)); diff != "" {
		t.Errorf("left behind (-want +got):\n%s", diff)
	}
	// The old layout is away and the new one is not there yet; then the next
	// fails too.
	half()
	if err := os.Rename(out, filepath.Join(parent, ".layout.fleeting-plugin-new.old")); err != nil {
		t.Fatal(err)
	}
	scanned := scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64"))
	sampleplugin.Write(t, filepath.Join(scanned.Dir(), "linux/amd64/plugin"), []byte("other"), 0o755)
	if _, err := packager.Pack(t.Context(), scanned, version(t, "1.0.0"), out, packager.PackOptions{}); !errors.Is(err, dist.ErrInput) {
		t.Errorf("error = %v", err)
	}
	if diff := cmp.Diff([]string{".other.fleeting-plugin-new", "layout"}, names(t, parent)); diff != "" {
		t.Errorf("left behind (-want +got):\n%s", diff)
	}
	if _, err := packager.OpenLayout(t.Context(), out); err != nil {
		t.Errorf("the old layout: %v", err)
	}
}

// TestPackWaitsForAnother neither breaks nor clears what another process is
// writing.
func TestPackWaitsForAnother(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	out := filepath.Join(parent, "layout")
	other := flock.New(filepath.Join(parent, ".layout.fleeting-plugin.lock"))
	if ok, err := other.TryLock(); err != nil || !ok {
		t.Fatal(ok, err)
	}
	sampleplugin.Write(t, filepath.Join(parent, ".layout.fleeting-plugin-new/half"), []byte("x"), 0o600)
	scanned := scan(t, sampleplugin.Dist(t, "1.0.0", "linux/amd64"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := packager.Pack(ctx, scanned, version(t, "1.0.0"), out, packager.PackOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	if diff := cmp.Diff([]string{".layout.fleeting-plugin-new", ".layout.fleeting-plugin.lock"}, names(t, parent)); diff != "" {
		t.Errorf("beside (-want +got):\n%s", diff)
	}
	if err := other.Unlock(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			_, err := packager.Pack(t.Context(), scanned, version(t, "1.0.0"), out, packager.PackOptions{})
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"layout"}, names(t, parent)); diff != "" {
		t.Errorf("left behind (-want +got):\n%s", diff)
	}
}
