package installer

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/untar"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// maxLayers bounds how many layers of a foreign image are searched.
const maxLayers = 64

// payload is where in a manifest the plugin is.
type payload struct {
	// layers to look in, in this order; the first that has the executable counts.
	layers    []ocispec.Descriptor
	selection untar.Selection
	// raw says that the layer is the executable itself, not an archive.
	raw bool
	// executable is the name of the plugin on the platform.
	executable string
	// said is what the artifact says its version is, the most specific place first.
	// A layer's annotation must be one; elsewhere what is none is passed over.
	said      []string
	annotated bool
}

// findPayload recognises what publishers make: the runner's layout first, by its
// annotation; then images by their entrypoint; then a file as oras pushes it.
func findPayload(ctx context.Context, src Source, chain admission.Chain, platform string) (payload, error) {
	p, err := artifact.ReadPlatform(platform)
	if err != nil {
		return payload{}, err
	}
	executable := p.Executable()
	manifest := chain.Manifest()
	if marked := artifact.PluginLayers(manifest); len(marked) > 0 {
		// Several may be marked; the runner takes the first.
		return payload{
			layers: []ocispec.Descriptor{marked[0].Descriptor}, selection: untar.Plugin(executable),
			executable: executable, said: []string{marked[0].Version}, annotated: true,
		}, nil
	}
	if len(manifest.Layers) == 0 || len(manifest.Layers) > maxLayers {
		return payload{}, fmt.Errorf("%w: manifest %s has %d layers", errNotPlugin, chain.ManifestDigest(), len(manifest.Layers))
	}
	if file, ok := rawFile(manifest, executable); ok {
		var config ocispec.Image
		if artifact.IsConfig(manifest.Config.MediaType) {
			if config, err = fetchConfig(ctx, src, manifest); err != nil {
				return payload{}, err
			}
		}
		return payload{layers: []ocispec.Descriptor{file}, raw: true, executable: executable, said: saidVersions(chain, config)}, nil
	}
	return imagePayload(ctx, src, chain, executable)
}

// saidVersions are the places where an artifact without the annotation of its
// layer says a version, the most specific first: a label may be that of a base
// image.
func saidVersions(chain admission.Chain, config ocispec.Image) []string {
	return []string{
		envVersion(config),
		chain.Annotation(ocispec.AnnotationVersion),
		config.Config.Labels[ocispec.AnnotationVersion],
	}
}

// rawFile finds the layer that is the executable itself, by the title that oras
// gives it.
func rawFile(manifest ocispec.Manifest, executable string) (ocispec.Descriptor, bool) {
	for _, layer := range manifest.Layers {
		_, isArchive := artifact.LayerCompression(layer.MediaType)
		if !isArchive && path.Base(layer.Annotations[ocispec.AnnotationTitle]) == executable {
			return layer, true
		}
	}
	return ocispec.Descriptor{}, false
}

// imagePayload finds the executable of a container image: what it would run.
func imagePayload(ctx context.Context, src Source, chain admission.Chain, executable string) (payload, error) {
	manifest := chain.Manifest()
	if !artifact.IsConfig(manifest.Config.MediaType) {
		return payload{}, fmt.Errorf("%w: manifest %s has no layer marked %s, no image config and no file named %s",
			errNotPlugin, chain.ManifestDigest(), artifact.AnnotationLayer, executable)
	}
	config, err := fetchConfig(ctx, src, manifest)
	if err != nil {
		return payload{}, err
	}
	at, err := entrypoint(config, executable)
	if err != nil {
		return payload{}, err
	}
	p := payload{executable: executable, selection: untar.Single(at, executable)}
	if path.Dir(at) == "/"+artifact.PluginDir {
		// Companions are meant to be there only where the folder is the plugin's own.
		p.selection = untar.Folder(at, executable)
	}
	for _, layer := range slices.Backward(manifest.Layers) {
		if _, ok := artifact.LayerCompression(layer.MediaType); ok {
			p.layers = append(p.layers, layer)
		}
	}
	if len(p.layers) == 0 {
		return payload{}, fmt.Errorf("%w: manifest %s has no layer that is an archive", errNotPlugin, chain.ManifestDigest())
	}
	p.said = saidVersions(chain, config)
	return p, nil
}

// entrypoint is the absolute path of what an image runs.
func entrypoint(config ocispec.Image, executable string) (string, error) {
	command := append(slices.Clone(config.Config.Entrypoint), config.Config.Cmd...)
	at := "/" + artifact.PluginDir + "/" + executable
	if len(command) > 0 {
		at = command[0]
	}
	if !path.IsAbs(at) {
		at = path.Join("/", cmp.Or(config.Config.WorkingDir, "/"), at)
	}
	at = path.Clean(at)
	switch path.Base(at) {
	case "sh", "bash", "ash", "dash", "env", "tini", "dumb-init":
		return "", fmt.Errorf("%w: the image runs %s, not a plugin", errNotPlugin, at)
	}
	return at, nil
}

// executableOf is the digest of the executable that the publisher announced, ""
// without an announcement. One that cannot be read is no plugin of ours: nobody
// could say afterwards what was meant.
func executableOf(chain admission.Chain) (digest.Digest, error) {
	text := chain.Annotation(artifact.AnnotationExecutable)
	if text == "" {
		return "", nil
	}
	announced, err := digest.Parse(text)
	if err == nil && announced.Algorithm() != digest.SHA256 {
		err = digest.ErrDigestUnsupported
	}
	if err != nil {
		return "", fmt.Errorf("%w: annotation %s %.80q: %w", errNotPlugin, artifact.AnnotationExecutable, text, err)
	}
	return announced, nil
}

// runnerProtocol is the version of the protocol between GitLab Runner and its
// plugins: the only one so far.
const runnerProtocol = 0

// needs gives what the publisher says that the plugin needs of its host, as a
// sentence; a protocol that no runner speaks is an error.
func needs(chain admission.Chain) (string, error) {
	text := chain.Annotation(artifact.AnnotationMetadata)
	if text == "" {
		return "", nil
	}
	said, err := artifact.DecodeMetadata(text)
	if err != nil {
		return "", fmt.Errorf("%w: annotation %s: %w", errNotPlugin, artifact.AnnotationMetadata, err)
	}
	if said.Protocol != nil && *said.Protocol != runnerProtocol {
		return "", fmt.Errorf("%w: it speaks protocol %d, GitLab Runner speaks %d", errNotPlugin, *said.Protocol, runnerProtocol)
	}
	if said.MinimumRunner == "" {
		return "", nil
	}
	return fmt.Sprintf("Its publisher says that it needs GitLab Runner %.40q or newer.", said.MinimumRunner), nil
}

func envVersion(config ocispec.Image) string {
	for _, variable := range config.Config.Env {
		if value, ok := strings.CutPrefix(variable, artifact.EnvVersion+"="); ok {
			return value
		}
	}
	return ""
}

// ownVersion is the version that the artifact itself says; false where it says
// none.
func (p payload) ownVersion() (version.Version, bool, error) {
	for _, text := range p.said {
		v, err := version.ParseTag(text)
		if err == nil {
			return v, true, nil
		}
		if p.annotated {
			return version.Version{}, false, fmt.Errorf("%w: annotation %s: %w", errNotPlugin, artifact.AnnotationLayer, err)
		}
	}
	return version.Version{}, false, nil
}

// settleVersion decides what the version is: what the artifact says itself,
// since evidence covers that. A tag that says otherwise has been moved, and is
// refused. Where the artifact says nothing the version is that of the tag, or the
// one that it was locked with; own is false then.
func (p payload) settleVersion(found picked) (v version.Version, own bool, err error) {
	v, own, err = p.ownVersion()
	switch {
	case err != nil:
		return version.Version{}, false, err
	case own && found.known && !v.Equal(found.version):
		if found.locked {
			return version.Version{}, false, fmt.Errorf("%w: the lock has version %s, published is %s", errMoved, found.version, v)
		}
		return version.Version{}, false, fmt.Errorf("%w: the plugin with the tag %s has version %s", errMismatch, cmp.Or(found.tag, found.version.String()), v)
	case own:
		return v, true, nil
	case found.known:
		return found.version, false, nil
	}
	return version.Version{}, false, fmt.Errorf("%w: neither a tag nor the image says which version it is", errNotPlugin)
}
