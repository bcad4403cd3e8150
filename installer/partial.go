package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// PartialError is an index without all the manifests that it names, as a mirror
// of single platforms has it. It matches [ErrNotFound] (partial).
type PartialError struct {
	// Missing is the platform that was wanted.
	Missing string
	// Present are the platforms whose manifests are there, sorted.
	Present []string

	err error
}

// Error says what is missing and what is there.
func (e *PartialError) Error() string {
	present := strings.Join(e.Present, " ")
	if present == "" {
		present = "none"
	}
	return fmt.Sprintf("%v: the index names %s, whose manifest is not there; those that are: %s", errPartial, e.Missing, present)
}

// Unwrap returns the reason and the source's error.
func (e *PartialError) Unwrap() error { return e.err }

// partial explains why the manifest of an entry could not be fetched, if that is
// because it is not there; other errors stay as they are.
func partial(ctx context.Context, src Source, index ocispec.Index, missing ocispec.Descriptor, err error) error {
	platform, ok := entryPlatform(missing)
	if _, known := errors.AsType[*PartialError](err); !errors.Is(err, ErrNotFound) || !ok || known {
		return err
	}
	if _, there := src.Resolve(ctx, missing.Digest.String()); there == nil {
		return err // it is something else that is not there
	}
	e := &PartialError{Missing: platform.String(), err: errors.Join(errPartial, err)}
	for _, entry := range index.Manifests {
		platform, ok := entryPlatform(entry)
		if !ok || len(e.Present) >= maxUnlabelled {
			continue
		}
		if _, err := src.Resolve(ctx, entry.Digest.String()); err == nil {
			e.Present = append(e.Present, platform.WithOSVersion("").String())
		}
	}
	slices.Sort(e.Present)
	e.Present = slices.Compact(e.Present)
	return e
}

// fetchEntry fetches the manifest of an entry of an index.
func fetchEntry(ctx context.Context, src Source, index ocispec.Index, entry ocispec.Descriptor) ([]byte, error) {
	content, err := src.FetchAll(ctx, entry, artifact.ManifestLimit)
	return content, partial(ctx, src, index, entry, err)
}
