package packager

import (
	"context"
	"fmt"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// ReadMetadata reads back what [Pack] wrote into annotations; annotation gives
// the value of one, "" where there is none.
func ReadMetadata(annotation func(name string) string) (Metadata, error) {
	m := Metadata{
		Title: annotation(ocispec.AnnotationTitle), Description: annotation(ocispec.AnnotationDescription),
		Revision: annotation(ocispec.AnnotationRevision), Source: annotation(ocispec.AnnotationSource),
		URL: annotation(ocispec.AnnotationURL), Documentation: annotation(ocispec.AnnotationDocumentation),
		Licenses: annotation(ocispec.AnnotationLicenses), Vendor: annotation(ocispec.AnnotationVendor),
		Authors: annotation(ocispec.AnnotationAuthors),
	}
	// Without it, the artifact was made without a time.
	if text := annotation(ocispec.AnnotationCreated); text != "" {
		created, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return m, fmt.Errorf("annotation %s: %w", ocispec.AnnotationCreated, err)
		}
		m.Created = created
	}
	if text := annotation(artifact.AnnotationMetadata); text != "" {
		said, err := artifact.DecodeMetadata(text)
		if err != nil {
			return m, err
		}
		m.MinimumRunner, m.Protocol = said.MinimumRunner, said.Protocol
	}
	return m, nil
}

// PublishedMetadata reads what the index, or the single manifest, says that a tag
// or digest resolves to. Nothing is verified. Errors are those of the registry and
// [ErrNotPlugin].
func PublishedMetadata(ctx context.Context, from Source, reference string) (Metadata, error) {
	t, err := readTree(ctx, from, reference)
	if err != nil {
		return Metadata{}, err
	}
	return ReadMetadata(func(name string) string { return t.annotations[name] })
}
