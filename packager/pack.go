package packager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// Packed says what [Pack] made.
type Packed struct {
	// Layout is the folder.
	Layout string `json:"layout"`
	// Version is also the layout's tag.
	Version Version `json:"version"`
	// Digest of the index: what will be published.
	Digest digest.Digest `json:"digest"`
	// Created is the time that the artifact carries; nil if nothing tells one.
	Created *time.Time `json:"created,omitempty"`
	// Platforms in the order of the index.
	Platforms []PlatformResult `json:"platforms"`
	// Warnings are those of the input.
	Warnings []Warning `json:"warnings,omitempty"`
}

// PlatformResult is one platform of an artifact.
type PlatformResult struct {
	// Platform as "os/arch[/variant]".
	Platform string `json:"platform"`
	// Digest of the image manifest.
	Digest digest.Digest `json:"digest"`
	// Layer is the digest of the compressed layer, Size its size in bytes.
	Layer digest.Digest `json:"layer"`
	Size  int64         `json:"size"`
	// Executable is the SHA-256 digest of the plugin itself.
	Executable string `json:"executable"`
	// Files are all that the layer holds.
	Files []LayerFile `json:"files"`
}

// Pack writes the artifact for the executables of dist to an OCI image layout
// in the folder dir, with bills of materials hanging off it. A layout that is
// there is replaced as a whole at the end; any other folder with content is
// refused with [ErrExists]. Nothing is left behind after an error, and what a
// process left behind that was killed is removed by the next. Of two that write
// the same folder at once, the second waits.
//
// There is no network access. Errors are of [ErrInput], [ErrVersion],
// [ErrExists] or of the file system.
func Pack(ctx context.Context, dist *Dist, version Version, dir string, opts PackOptions) (*Packed, error) {
	opts.Report = serialised(opts.Report)
	if err := replaceable(dir); err != nil {
		return nil, err
	}
	out, err := openOutput(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer out.close()
	stage := out.beside(stageSuffix)
	if err := os.Mkdir(stage, 0o755); err != nil {
		return nil, fmt.Errorf("staging the layout: %w", err)
	}
	defer os.RemoveAll(stage) //nolint:errcheck // after success it is gone, or the layout of before
	if err := os.Chmod(stage, 0o755); err != nil {
		return nil, err
	}
	layout, err := ociregistry.CreateLayout(ctx, stage)
	if err != nil {
		return nil, err
	}
	b, err := build(ctx, dist, version, layoutStore{layout}, opts)
	if err != nil {
		return nil, err
	}
	// Storing small content in a folder is nothing to tell anybody of.
	if err := errors.Join(b.push(ctx, layout, func(Event) {}), b.attach(ctx, layout, func(Event) {})); err != nil {
		return nil, err
	}
	if err := layout.Tag(ctx, b.index.desc, version.String()); err != nil {
		return nil, err
	}
	if err := durable.SyncTree(stage); err != nil {
		return nil, err
	}
	if err := durable.PlaceDir(stage, dir); err != nil {
		return nil, err
	}
	return &Packed{
		Layout: dir, Version: version, Digest: b.index.desc.Digest, Created: b.metadata.told(),
		Platforms: b.results(), Warnings: dist.Warnings(),
	}, nil
}

func parentOf(dir string) string { return filepath.Dir(filepath.Clean(dir)) }

// replaceable says whether dir may be written.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return os.MkdirAll(parentOf(dir), 0o755)
	case err != nil:
		return err
	case len(entries) == 0 || exists(filepath.Join(dir, ocispec.ImageLayoutFile)):
		return nil
	}
	return fmt.Errorf("%s: %w", dir, ErrExists)
}

// attach attaches the documents to the manifests that they are about.
func (b *built) attach(ctx context.Context, to Target, report func(Event)) error {
	for _, subject := range b.subjects() {
		var documents []referrer
		for _, r := range b.referrers {
			if r.subject.Digest == subject.Digest {
				documents = append(documents, r)
			}
		}
		if err := attach(ctx, to, subject, documents, report); err != nil {
			return err
		}
	}
	return nil
}

// push stores everything but layers, documents and tags.
func (b *built) push(ctx context.Context, to Target, report func(Event)) error {
	if err := b.pushBases(ctx, to, report); err != nil {
		return err
	}
	for _, p := range b.platforms {
		if err := pushBlob(ctx, to, p.config, report); err != nil {
			return err
		}
		if err := to.PushManifest(ctx, p.manifest.desc, p.manifest.content); err != nil {
			return fmt.Errorf("pushing the manifest of %s: %w", p.in.platform, err)
		}
	}
	if err := to.PushManifest(ctx, b.index.desc, b.index.content); err != nil {
		return fmt.Errorf("pushing the index: %w", err)
	}
	return nil
}

func (b *built) results() []PlatformResult {
	out := make([]PlatformResult, len(b.platforms))
	for i, p := range b.platforms {
		out[i] = PlatformResult{
			Platform: p.in.platform.String(), Digest: p.manifest.desc.Digest,
			Layer: p.layer.Digest, Size: p.layer.Size, Executable: "sha256:" + p.executable.SHA256, Files: p.files,
		}
	}
	return out
}

// serialised returns a function that may be called from several goroutines.
func serialised(f func(Event)) func(Event) {
	var mu sync.Mutex
	call := reporter(f)
	return func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		call(e)
	}
}
