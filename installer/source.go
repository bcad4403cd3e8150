package installer

import (
	"context"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/evidence"
)

// Source is where one plugin comes from: a repository in a registry, or a
// layout on disk. What is not there is [ErrNotFound]. Any other error is a
// failure and never counts as absence.
type Source interface {
	// Tags lists all tags, of all pages.
	Tags(ctx context.Context) ([]string, error)
	// Resolve turns a tag or digest into a descriptor.
	Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error)
	// Fetch reads content. The stream ends with io.EOF only if size and digest are
	// those of the descriptor.
	Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error)
	// FetchAll is Fetch for content of at most limit bytes; it refuses more.
	FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error)
	// Referrers lists all manifests that have a subject.
	Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error)
}

var _ evidence.Source = Source(nil)

// Opener gives the source of a reference. It may look elsewhere than the
// reference says, in a mirror or a folder: the policy goes by the reference.
type Opener func(ctx context.Context, ref Reference) (Source, error)

// FromLayout takes plugins from an OCI layout folder, whatever registry a
// reference names; see [Layout.Open].
func FromLayout(dir string) Opener {
	return func(ctx context.Context, ref Reference) (Source, error) {
		layout, err := OpenLayout(ctx, dir)
		if err != nil {
			return nil, err
		}
		return layout.Open(ctx, ref)
	}
}

// pullName is the name that a registry client is given.
func (r Reference) pullName() string {
	if r.registry == dockerHub {
		return "docker.io/" + r.repository
	}
	return r.Name()
}
