package ociregistry_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
)

// TestBrokenUploadGoesOn cuts the connection while a blob is being sent.
func TestBrokenUploadGoesOn(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	withPassword := []registrytest.Option{registrytest.WithPassword("me", "secret")}
	tests := []struct {
		name     string
		registry func(*testing.T) *registrytest.Registry
		faults   []registrytest.Fault
		// sent are the lengths of the uploads that the registry was sent.
		sent []int64
	}{
		{
			"goes on", func(t *testing.T) *registrytest.Registry { return registrytest.New(t) },
			[]registrytest.Fault{{Method: http.MethodPut, Path: "/blobs/uploads/", Times: 1, CutUpload: 600_000}},
			[]int64{size, size - 600_000},
		},
		{
			"with a password", func(t *testing.T) *registrytest.Registry { return registrytest.New(t, withPassword...) },
			[]registrytest.Fault{{Method: http.MethodPut, Path: "/blobs/uploads/", Times: 1, CutUpload: 600_000}},
			[]int64{size, size - 600_000},
		},
		{
			"twice", func(t *testing.T) *registrytest.Registry { return registrytest.New(t) },
			[]registrytest.Fault{{Method: http.MethodPut, Path: "/blobs/uploads/", Times: 2, CutUpload: 300_000}},
			[]int64{size, size - 300_000, size - 600_000},
		},
		{
			"the registry does not tell", func(t *testing.T) *registrytest.Registry { return registrytest.New(t) },
			[]registrytest.Fault{
				{Method: http.MethodPut, Path: "/blobs/uploads/", Times: 1, CutUpload: 600_000},
				{Method: http.MethodGet, Path: "/blobs/uploads/", Status: http.StatusNotFound},
			},
			[]int64{size, size},
		},
		{
			"the registry takes no rest", func(t *testing.T) *registrytest.Registry { return registrytest.New(t) },
			[]registrytest.Fault{
				{Method: http.MethodPut, Path: "/blobs/uploads/", Times: 1, CutUpload: 600_000},
				{Method: http.MethodPut, Path: "/blobs/uploads/", Times: 1, Status: http.StatusRequestedRangeNotSatisfiable},
			},
			[]int64{size, size - 600_000, size},
		},
		{
			"another registry", func(t *testing.T) *registrytest.Registry { return registrytest.NewReferrers(t) },
			[]registrytest.Fault{{Method: http.MethodPut, Path: "/blobs/uploads/", Times: 1, CutUpload: 600_000}},
			[]int64{size, size},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			reg := tt.registry(t)
			repo := openWith(t, reg, ociregistry.Options{Credentials: func(context.Context, string) (ociregistry.Credential, error) {
				return ociregistry.Credential{Username: "me", Password: "secret"}, nil
			}})
			blob := make([]byte, size)
			_, _ = rand.Read(blob)
			desc := artifact.Describe("application/octet-stream", blob)
			reg.Gate.Break(t, tt.faults...)
			uploaded, err := repo.PushBlob(t.Context(), desc, opener(blob))
			if err != nil || !uploaded {
				t.Fatalf("uploaded %v, error %v", uploaded, err)
			}
			reg.Gate.Mend()
			var sent []int64
			for _, r := range reg.Gate.Requests() {
				if r.Method == http.MethodPut {
					sent = append(sent, r.Length)
				}
			}
			if diff := cmp.Diff(tt.sent, sent); diff != "" {
				t.Errorf("lengths of uploads (-want +got):\n%s", diff)
			}
			if got, err := repo.FetchAll(t.Context(), desc, size); err != nil || !bytes.Equal(got, blob) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// TestLostAnswerSendsNothingAgain loses the answer to an upload that arrived.
func TestLostAnswerSendsNothingAgain(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t)
	repo := openRepository(t, reg)
	blob := bytes.Repeat([]byte("plugin"), 1000)
	desc := artifact.Describe("application/octet-stream", blob)
	reg.Gate.Break(t, registrytest.Fault{Method: http.MethodPut, Path: "/blobs/uploads/", Times: 1, CutUpload: int64(len(blob)) + 1})
	opened := 0
	uploaded, err := repo.PushBlob(t.Context(), desc, func() (io.ReadCloser, error) {
		opened++
		return opener(blob)()
	})
	if err != nil || !uploaded || opened != 1 {
		t.Errorf("uploaded %v after reading %d times, error %v", uploaded, opened, err)
	}
}
