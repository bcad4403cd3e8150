package ociregistry_test

import (
	"errors"
	"io"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

func TestLayoutIngest(t *testing.T) {
	t.Parallel()
	l, err := ociregistry.CreateLayout(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	desc, err := l.Ingest("text/plain", func(w io.Writer) error {
		_, err := io.WriteString(w, "hello")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := l.FetchAll(t.Context(), desc, 100); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	boom := errors.New("boom")
	if _, err := l.Ingest("text/plain", func(io.Writer) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("failing writer: %v", err)
	}
}

func TestOpenLayoutRefusesOtherFolders(t *testing.T) {
	t.Parallel()
	if _, err := ociregistry.OpenLayout(t.Context(), t.TempDir()); !errors.Is(err, ociregistry.ErrNotFound) {
		t.Errorf("empty folder: %v", err)
	}
}
