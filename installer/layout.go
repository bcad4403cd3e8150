package installer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// Layout is an OCI image layout folder that holds any number of plugins: a
// mirror on disk. Its tags are names with a tag, registry/repository:tag.
type Layout struct{ layout *ociregistry.Layout }

// OpenLayout opens a layout folder.
func OpenLayout(ctx context.Context, dir string) (*Layout, error) {
	layout, err := ociregistry.OpenLayout(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &Layout{layout}, nil
}

// CreateLayout opens a layout folder, and makes it if it is not there.
func CreateLayout(ctx context.Context, dir string) (*Layout, error) {
	layout, err := ociregistry.CreateLayout(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &Layout{layout}, nil
}

// Destination is where the plugin of a reference goes in the layout.
func (l *Layout) Destination(ref Reference) Destination { return l.view(ref.Name()) }

// Open gives the plugin of a reference; it is an [Opener]. In a layout of which
// no tag has a name in front, as a packager writes it, every reference is the
// one plugin that it holds.
func (l *Layout) Open(ctx context.Context, ref Reference) (Source, error) {
	tags, err := l.layout.Tags(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(tags, func(tag string) bool { return strings.Contains(tag, "/") }) {
		return l.view(ref.Name()), nil
	}
	return l.layout, nil
}

func (l *Layout) view(name string) layoutView { return layoutView{l.layout, name + ":"} }

// References gives an exact reference for every version of every plugin in the
// layout, sorted.
func (l *Layout) References(ctx context.Context) ([]Reference, error) {
	tags, err := l.layout.Tags(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]Reference{}
	for _, tag := range tags {
		ref, err := ParseReference(tag)
		if err != nil || !strings.Contains(tag, "/") {
			continue // signatures, and names of others
		}
		if _, exact := ref.constraint.Exact(); exact {
			seen[ref.String()] = ref
		}
	}
	var refs []Reference
	for _, ref := range seen {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b Reference) int { return strings.Compare(a.String(), b.String()) })
	return refs, nil
}

// layoutView is the part of a layout whose tags begin with a name.
type layoutView struct {
	*ociregistry.Layout
	prefix string
}

// Tags gives the tags of the name.
func (v layoutView) Tags(ctx context.Context) ([]string, error) {
	all, err := v.Layout.Tags(ctx)
	var tags []string
	for _, tag := range all {
		if own, ok := strings.CutPrefix(tag, v.prefix); ok {
			tags = append(tags, own)
		}
	}
	if err == nil && len(tags) == 0 {
		err = fmt.Errorf("%w: %s is not in %s", ErrNotFound, strings.TrimSuffix(v.prefix, ":"), v.Name())
	}
	return tags, err
}

// Resolve resolves a tag of the name, or a digest of the layout.
func (v layoutView) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	if strings.Contains(reference, ":") {
		return v.Layout.Resolve(ctx, reference)
	}
	return v.Layout.Resolve(ctx, v.prefix+reference)
}

// PushManifest stores a manifest under tags of the name.
func (v layoutView) PushManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, tags ...string) error {
	full := make([]string, 0, len(tags))
	for _, tag := range tags {
		full = append(full, v.prefix+tag)
	}
	return v.Layout.PushManifest(ctx, desc, content, full...)
}

var (
	_ Source      = layoutView{}
	_ Destination = layoutView{}
)
