package untar_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/untar"
)

// TestBounded holds that a limit is never taken for the end, wherever in an
// archive it falls: at the boundary of a header an end would look like success.
func TestBounded(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"a", "b"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for limit := range int64(b.Len() + 1) {
		r := tar.NewReader(untar.Bounded(t.Context(), bytes.NewReader(b.Bytes()), limit))
		var err error
		names := 0
		for ; err == nil; names++ {
			_, err = r.Next()
		}
		// The reader of archives stops behind two blocks of zeros.
		if whole := limit >= 2048; errors.Is(err, io.EOF) != whole || errors.Is(err, untar.ErrLimit) == whole {
			t.Fatalf("%d of %d bytes: %v after %d headers", limit, b.Len(), err, names-1)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := untar.Bounded(ctx, bytes.NewReader(b.Bytes()), 1).Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
