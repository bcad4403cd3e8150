package packager

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/progress"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// PackOptions change what [Pack] and [Release] make. The zero value is right
// for most plugins.
type PackOptions struct {
	Metadata Metadata
	// Licenses finds the licences of the modules for the bills of materials;
	// see [sbom.NewModuleCache]. Nil leaves them unknown. What a file
	// THIRD_PARTY_NOTICES.txt beside an executable says of them counts before it.
	Licenses sbom.Licenses
	// Tool and ToolVersion are named in the bills of materials as the program
	// that made them. Default: fleeting-plugin.
	Tool, ToolVersion string
	// SkipSBOM leaves the bills of materials out.
	SkipSBOM bool
	// WindowsBases are images that Windows images are built on as well, one for
	// each build of Windows; see [Base].
	WindowsBases []Base
	// Parallel is how many platforms are compressed at a time. Default: the
	// number of processors, at most 3.
	Parallel int
	// Report is told of every step. It is called from several goroutines, one
	// at a time.
	Report func(Event)
}

func (o PackOptions) parallel() int {
	if o.Parallel > 0 {
		return o.Parallel
	}
	return min(runtime.GOMAXPROCS(0), 3)
}

// blob is small content together with its descriptor.
type blob struct {
	desc    ocispec.Descriptor
	content []byte
}

// builtPlatform is the image of one platform.
type builtPlatform struct {
	platform artifact.Platform
	// base is the image that it is built on, nil for none.
	base             *baseImage
	layer            ocispec.Descriptor
	config, manifest blob
	executable       sbom.Executable
	files            []LayerFile
}

// document is a bill of materials of a manifest.
type document struct {
	subject           ocispec.Descriptor
	content, manifest blob
}

// built is a whole artifact. Its layers are in the layout; everything else is here.
type built struct {
	version   Version
	metadata  Metadata
	index     blob
	platforms []builtPlatform
	documents []document
}

// build makes the artifact, and stores its layers.
func build(ctx context.Context, from *dist.Dist, version Version, layout *ociregistry.Layout, opts PackOptions) (*built, error) {
	if version.IsZero() {
		return nil, fmt.Errorf("%w: none given", ErrVersion)
	}
	if err := opts.Metadata.validate(); err != nil {
		return nil, err
	}
	b := &built{version: version}
	inputs := from.Inputs()
	executables := make([]sbom.Executable, len(inputs))
	for i, in := range inputs {
		exe, err := describe(in, opts.Licenses)
		if err != nil {
			return nil, err
		}
		executables[i] = exe
	}
	if !opts.SkipSBOM {
		opts.reportUnknown(executables)
	}
	metadata, extra := opts.Metadata.complete(executables)
	b.metadata = metadata

	images := make([][]builtPlatform, len(inputs))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(opts.parallel())
	for i, in := range inputs {
		g.Go(func() (err error) {
			l := layer{from: from, in: in, created: metadata.moment()}
			if images[i], err = buildPlatform(gctx, l, executables[i], version, metadata, layout, opts); err != nil {
				return fmt.Errorf("packaging %s: %w", in.Platform(), err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	b.platforms = slices.Concat(images...)
	if err := b.buildIndex(extra); err != nil {
		return nil, err
	}
	if opts.SkipSBOM {
		return b, nil
	}
	return b, b.buildSBOMs(opts)
}

// buildPlatform makes the layer of a platform and its images: one on each base,
// then the one without. Runtimes take the first that fits.
func buildPlatform(ctx context.Context, l layer, exe sbom.Executable, version Version, metadata Metadata, layout *ociregistry.Layout, opts PackOptions) ([]builtPlatform, error) {
	bases, err := resolveBases(ctx, opts.WindowsBases, l.in.Platform())
	if err != nil {
		return nil, err
	}
	stored, err := storeLayer(ctx, l, layout, opts)
	if err != nil {
		return nil, err
	}
	files, err := l.contents(ctx)
	if err != nil {
		return nil, err
	}
	exe = withDigests(exe, files)
	var all []builtPlatform
	for i := range bases {
		all = append(all, builtPlatform{
			platform: l.in.Platform().WithOSVersion(bases[i].osVersion), base: &bases[i], executable: exe, files: files,
		})
	}
	all = append(all, builtPlatform{platform: l.in.Platform(), executable: exe, files: files})
	for i := range all {
		if err := all[i].image(stored, version, metadata); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// image makes config and manifest around a layer.
func (p *builtPlatform) image(stored storedLayer, version Version, metadata Metadata) (err error) {
	p.layer = stored.desc
	p.layer.Annotations = map[string]string{artifact.AnnotationLayer: version.String()}
	annotations := metadata.annotations(version)
	config := artifact.ConfigInput{
		Platform: p.platform, Version: version.String(), DiffIDs: []digest.Digest{stored.diffID},
		Created: metadata.moment(), Labels: annotations,
	}
	layers := []ocispec.Descriptor{p.layer}
	if p.base != nil {
		config.Base = &p.base.config
		layers = append(slices.Clone(p.base.layers), p.layer)
	}
	if p.config.desc, p.config.content, err = artifact.EncodeConfig(config); err != nil {
		return err
	}
	p.manifest.desc, p.manifest.content, err = artifact.EncodeManifest(artifact.ManifestInput{
		Config: p.config.desc, Layers: layers, Annotations: annotations,
	})
	return err
}

// storedLayer is a layer in a layout; diffID is the digest of its tar stream.
type storedLayer struct {
	desc   ocispec.Descriptor
	diffID digest.Digest
}

func storeLayer(ctx context.Context, l layer, layout *ociregistry.Layout, opts PackOptions) (stored storedLayer, err error) {
	packing := Event{Kind: EventPacking, Subject: l.in.Platform().String(), Size: l.in.Size()}
	opts.Report(packing)
	stored.desc, err = layout.Ingest(ocispec.MediaTypeImageLayerGzip, func(w io.Writer) (err error) {
		stored.diffID, err = l.write(ctx, w, progress.Writer(packing.Size, packing.reporting(opts.Report)))
		return err
	})
	if err != nil {
		return storedLayer{}, err
	}
	opts.Report(Event{Kind: EventPacked, Subject: l.in.Platform().String(), Size: stored.desc.Size})
	return stored, nil
}

func (b *built) buildIndex(extra artifact.Metadata) error {
	annotations := b.metadata.annotations(b.version)
	if !extra.IsZero() {
		text, err := extra.Encode()
		if err != nil {
			return err
		}
		annotations[artifact.AnnotationMetadata] = text
	}
	entries := make([]ocispec.Descriptor, len(b.platforms))
	for i, p := range b.platforms {
		entries[i] = p.manifest.desc
		platform := p.platform.OCI()
		entries[i].Platform = &platform
		entries[i].Annotations = map[string]string{
			ocispec.AnnotationVersion:       b.version.String(),
			ocispec.AnnotationBaseImageName: "scratch",
			artifact.AnnotationExecutable:   string(digest.NewDigestFromEncoded(digest.SHA256, p.executable.SHA256)),
		}
		if p.base != nil {
			entries[i].Annotations[ocispec.AnnotationBaseImageName] = p.base.name
			entries[i].Annotations[ocispec.AnnotationBaseImageDigest] = p.base.digest.String()
		}
	}
	var err error
	b.index.desc, b.index.content, err = artifact.EncodeIndex(entries, annotations)
	return err
}
