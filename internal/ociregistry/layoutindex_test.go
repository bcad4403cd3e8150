package ociregistry_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// pushTagged stores a manifest of its own for the name, and tags it.
func pushTagged(t *testing.T, layout *ociregistry.Layout, name string, tags ...string) {
	t.Helper()
	content := []byte(fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"text/plain","digest":"%s","size":0},"layers":[],"annotations":{"n":%q}}`, digest.FromString(""), name))
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(content), Size: int64(len(content))}
	if err := layout.PushManifest(t.Context(), desc, content, tags...); err != nil {
		t.Error(err)
	}
}

// TestLayoutIndexIsWhole holds that whoever looks at index.json finds it
// complete, at every moment: who is killed in between loses nothing that was
// there. Two who write at once keep what the other added.
func TestLayoutIndexIsWhole(t *testing.T) {
	t.Parallel()
	const writers, each = 3, 20
	dir := t.TempDir()
	var want []string
	// The reader reads whenever there is something new. One that never stops keeps
	// writers on Windows from replacing the file for longer than they wait.
	written, done := make(chan struct{}, 1), make(chan struct{})
	push := func(layout *ociregistry.Layout, content string, tags ...string) {
		pushTagged(t, layout, content, tags...)
		select {
		case written <- struct{}{}:
		default:
		}
	}
	var writing sync.WaitGroup
	for w := range writers {
		layout, err := ociregistry.CreateLayout(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		for n := range each {
			want = append(want, fmt.Sprintf("%d.%02d", w, n))
		}
		writing.Go(func() {
			for n := range each {
				tag := fmt.Sprintf("%d.%02d", w, n)
				push(layout, tag, tag)
				push(layout, tag+" untagged")
			}
		})
	}
	go func() {
		writing.Wait()
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-written:
		}
		var raw []byte
		err := durable.WhileInUse(func() (err error) {
			raw, err = os.ReadFile(filepath.Join(dir, ocispec.ImageIndexFile))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(raw) {
			t.Fatalf("index.json of %d bytes is cut off", len(raw))
		}
	}
	again, err := ociregistry.OpenLayout(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Tags(t.Context())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestLayoutIndexOrder holds that the same content gives the same index.json,
// whatever the order that it came in; a moved tag leaves its manifest behind.
func TestLayoutIndexOrder(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e", "f"}
	var first []byte
	for turn := range names {
		dir := t.TempDir()
		layout, err := ociregistry.CreateLayout(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		pushTagged(t, layout, "old", "a")
		for n := range names {
			name := names[(n+turn)%len(names)]
			pushTagged(t, layout, name+" untagged")
			pushTagged(t, layout, name, name, name+"2")
		}
		raw, err := os.ReadFile(filepath.Join(dir, ocispec.ImageIndexFile))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = raw
		}
		if diff := cmp.Diff(string(first), string(raw)); diff != "" {
			t.Errorf("turn %d (-first +this):\n%s", turn, diff)
		}
		var index ocispec.Index
		if err := json.Unmarshal(raw, &index); err != nil || len(index.Manifests) != 3*len(names)+1 {
			t.Errorf("%d entries, %v; want %d", len(index.Manifests), err, 3*len(names)+1)
		}
	}
}
