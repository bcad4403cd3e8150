package rebuild

import (
	"context"
	"path/filepath"

	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// Pack packages the folders "os/arch[variant]" in dir as the publisher did, by
// the annotations of what is published, and returns the digests that come out.
// work is a folder for its own use.
func Pack(ctx context.Context, dir, work, version string, annotation func(string) string) (*packager.Packed, error) {
	v, err := packager.ParseVersion(version)
	if err != nil {
		return nil, err
	}
	metadata, err := packager.ReadMetadata(annotation)
	if err != nil {
		return nil, err
	}
	found, err := dist.Scan(ctx, dir, dist.Options{})
	if err != nil {
		return nil, err
	}
	return packager.Pack(ctx, found, v, filepath.Join(work, "layout"), packager.PackOptions{Metadata: metadata, SkipSBOM: true})
}
