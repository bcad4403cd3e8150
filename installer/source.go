package installer

import (
	"context"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/evidence"
)

// Source is where one plugin comes from: a repository in a registry, or a
// layout on disk. Its errors match [ErrNotFound] and its neighbours where they
// are of that kind; whatever else fails is taken for a failure, never for
// absence.
type Source interface {
	TagLister
	Resolver
	Fetcher
	ReferrerLister
}

// TagLister lists all tags, of all pages.
type TagLister interface {
	Tags(ctx context.Context) ([]string, error)
}

// Resolver turns a tag or digest into a descriptor.
type Resolver interface {
	Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error)
}

// Fetcher reads content, checked against its descriptor: a stream ends with
// io.EOF only if size and digest were right.
type Fetcher interface {
	Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error)
	// FetchAll refuses content of more than limit bytes.
	FetchAll(ctx context.Context, desc ocispec.Descriptor, limit int64) ([]byte, error)
}

// ReferrerLister lists the manifests that have a subject, unfiltered.
type ReferrerLister interface {
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
