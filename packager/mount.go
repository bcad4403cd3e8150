package packager

import (
	"context"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Mounter takes blobs over from another repository of the same registry, so
// that they need not be sent.
type Mounter interface {
	// Mount says whether the registry took the blob over from the repository,
	// "path" without the host. A refusal is no error.
	Mount(ctx context.Context, desc ocispec.Descriptor, from string) (bool, error)
}

// mounting is a repository that tries to mount what it does not have.
type mounting struct {
	Repository
	from []string
}

// withMounts returns repo if there is nothing to mount from.
func withMounts(repo Repository, from []string) Repository {
	if len(from) == 0 {
		return repo
	}
	return mounting{repo, from}
}

// PushBlob mounts the blob, or uploads it.
func (m mounting) PushBlob(ctx context.Context, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) (bool, error) {
	there, err := m.Exists(ctx, desc)
	if err != nil || there {
		return false, err
	}
	for _, from := range m.from {
		mounted, err := m.Mount(ctx, desc, from)
		if err != nil || mounted {
			return false, err
		}
	}
	return m.Repository.PushBlob(ctx, desc, open)
}
