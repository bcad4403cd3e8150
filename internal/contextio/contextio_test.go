package contextio_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/contextio"
)

func TestReader(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := contextio.Reader(ctx, strings.NewReader("before and after"))
	before := make([]byte, len("before"))
	if _, err := io.ReadFull(r, before); err != nil || string(before) != "before" {
		t.Fatalf("got %q, %v", before, err)
	}
	cancel()
	if after, err := io.ReadAll(r); len(after) > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %q, %v", after, err)
	}
}
