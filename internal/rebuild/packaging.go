package rebuild

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// Pack packages the folders "os/arch[variant]" in dir as the publisher did, by
// the annotations of what is published, and returns the digests that come out.
// work is a folder for its own use.
func Pack(ctx context.Context, dir, work, version string, annotation func(string) string) (*packager.Packed, error) {
	v, err := packager.ParseVersion(version)
	if err != nil {
		return nil, err
	}
	metadata, err := metadataOf(annotation)
	if err != nil {
		return nil, err
	}
	dist, err := packager.Scan(ctx, dir, packager.ScanOptions{})
	if err != nil {
		return nil, err
	}
	return packager.Pack(ctx, dist, v, filepath.Join(work, "layout"), packager.PackOptions{Metadata: metadata, SkipSBOM: true})
}

// metadataOf reads back what [packager.Pack] wrote into annotations.
func metadataOf(annotation func(string) string) (packager.Metadata, error) {
	m := packager.Metadata{
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
