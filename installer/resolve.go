package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// Resolution is what a reference stands for now: one version, for one platform,
// down to the digests. Nothing about it has been verified.
type Resolution struct {
	// Reference is what was resolved.
	Reference Reference `json:"reference"`
	// Version is what the plugin says its version is.
	Version version.Version `json:"version"`
	// Tag is the tag that was chosen; empty for a digest.
	Tag string `json:"tag,omitempty"`
	// Index is the digest of the index; empty for a single manifest.
	Index digest.Digest `json:"index,omitempty"`
	// Manifest is the digest of the image manifest for the platform.
	Manifest digest.Digest `json:"manifest"`
	// Layer is the digest of the layer that holds the plugin, Size its bytes.
	Layer digest.Digest `json:"layer"`
	Size  int64         `json:"size"`
	// Executable is the digest that the publisher says the executable has, ""
	// where nothing says so.
	Executable digest.Digest `json:"executable,omitempty"`
	// Platform is that of the manifest, such as linux/arm/v7.
	Platform string `json:"platform"`
	// Explanation says in sentences why this version and this platform.
	Explanation []string `json:"explanation,omitempty"`

	source  Source
	chain   admission.Chain
	payload payload
	// found is how it was chosen, ownVersion whether the artifact itself says its
	// version: a tag is not covered by evidence.
	found      picked
	ownVersion bool
	// explanation is what Explanation begins with: why this tag and this platform.
	explanation []string
}

// Digest is what the reference resolved to: the index, or the single manifest.
func (r Resolution) Digest() digest.Digest {
	if r.Index != "" {
		return r.Index
	}
	return r.Manifest
}

// Resolve finds the version and the digests that a reference stands for. It
// reads tags and manifests, no layers, and changes nothing.
//
// Errors match [ErrNotFound], [ErrNotFound] (no-version), [ErrNotFound] (no-platform), [ErrBadContent] (not-plugin) or
// one of the registry errors.
func (i *Installer) Resolve(ctx context.Context, ref Reference) (Resolution, error) {
	return i.resolveBy(ctx, ref, pick)
}

// chooser finds what of a source a reference stands for.
type chooser func(ctx context.Context, src Source, ref Reference) (picked, error)

func (i *Installer) resolveBy(ctx context.Context, ref Reference, choose chooser) (Resolution, error) {
	r, err := i.resolve(ctx, ref, choose)
	return r, failed("resolving", ref.String(), err)
}

func (i *Installer) resolve(ctx context.Context, ref Reference, choose chooser) (Resolution, error) {
	src, err := i.source(ctx, ref)
	if err != nil {
		return Resolution{}, err
	}
	found, err := choose(ctx, src, ref)
	if err != nil {
		return Resolution{}, err
	}
	r := Resolution{Reference: ref, Tag: found.tag, Explanation: found.why, source: src, found: found}
	if err := i.follow(ctx, &r, found.desc); err != nil {
		return Resolution{}, err
	}
	r.explanation = slices.Clone(r.Explanation)
	if err := r.describe(ctx); err != nil {
		return Resolution{}, err
	}
	i.events(Event{Step: StepResolved, Reference: ref, Version: r.Version})
	return r, nil
}

// picked is the outcome of choosing among tags.
type picked struct {
	desc ocispec.Descriptor
	tag  string
	// version is that of the tag, or of the lock; known is false for digests and
	// floating tags.
	version version.Version
	known   bool
	// locked says that version is that of the lock.
	locked bool
	why    []string
}

// pick chooses a tag, or takes the digest. This is the only place where a tag is
// looked up; from here on there are digests only.
func pick(ctx context.Context, src Source, ref Reference) (picked, error) {
	if ref.Pinned() {
		desc, err := pickDigest(ctx, src, ref.Digest())
		return picked{desc: desc, why: []string{"The reference has a digest; tags were not asked."}}, err
	}
	constraint, _ := ref.Constraint()
	if exact, ok := constraint.Exact(); ok {
		found, err := pickExact(ctx, src, exact)
		if err == nil || !errors.Is(err, ErrNotFound) {
			return found, err
		}
	}
	return pickListed(ctx, src, constraint)
}

func pickDigest(ctx context.Context, src Source, want digest.Digest) (ocispec.Descriptor, error) {
	desc, err := src.Resolve(ctx, want.String())
	if err == nil && desc.Digest != want {
		err = fmt.Errorf("%w: asked for %s, got %s", errMismatch, want, desc.Digest)
	}
	return desc, err
}

// pickExact tries the tags that one version may have, without a listing.
func pickExact(ctx context.Context, src Source, v version.Version) (picked, error) {
	var missing error
	for _, tag := range []string{v.Tag(), "v" + v.Tag()} {
		desc, err := src.Resolve(ctx, tag)
		if err == nil {
			return picked{desc: desc, tag: tag, version: v, known: true, why: []string{fmt.Sprintf("The version is exact; its tag is %s.", tag)}}, nil
		}
		if !errors.Is(err, ErrNotFound) {
			return picked{}, err
		}
		missing = err
	}
	return picked{}, missing
}

// pickListed chooses the greatest listed version that matches, else the floating
// tag that stands for the constraint. Where listing is not allowed there is only
// the floating tag.
func pickListed(ctx context.Context, src Source, constraint version.Constraint) (picked, error) {
	tags, listErr := src.Tags(ctx)
	if listErr != nil && !ociregistry.ListingRefused(listErr) {
		return picked{}, listErr
	}
	versions, byVersion := versionTags(tags)
	if best, ok := constraint.Select(versions); ok {
		tag := byVersion[best.String()]
		desc, err := src.Resolve(ctx, tag)
		why := fmt.Sprintf("%s is the greatest of %d versions that satisfies %q.", best, len(versions), constraint)
		return picked{desc: desc, tag: tag, version: best, known: true, why: []string{why}}, err
	}
	alias, ok := constraint.Alias()
	if !ok {
		return picked{}, noVersion(constraint, versions, listErr)
	}
	desc, err := src.Resolve(ctx, alias)
	if errors.Is(err, ErrNotFound) {
		return picked{}, noVersion(constraint, versions, errors.Join(listErr, err))
	}
	why := fmt.Sprintf("No tag is a version that satisfies %q; the floating tag %s is there.", constraint, alias)
	if listErr != nil {
		why = fmt.Sprintf("The registry does not list tags; the floating tag %s was taken.", alias)
	}
	return picked{desc: desc, tag: alias, why: []string{why}}, err
}

func noVersion(constraint version.Constraint, versions []version.Version, cause error) error {
	if len(versions) == 0 && cause != nil {
		return cause
	}
	slices.SortFunc(versions, func(a, b version.Version) int { return b.Compare(a) })
	const shown = 5
	text := ""
	for i, v := range versions {
		if i == shown {
			text += fmt.Sprintf(" and %d more", len(versions)-shown)
			break
		}
		text += " " + v.String()
	}
	if text == "" {
		text = " nothing"
	}
	return fmt.Errorf("%w %q: published is%s", errNoVersion, constraint, text)
}

// versionTags gives the versions among the tags. Of two tags for one version the
// one without v is kept.
func versionTags(tags []string) ([]version.Version, map[string]string) {
	var versions []version.Version
	byVersion := map[string]string{}
	for _, tag := range tags {
		v, err := version.ParseTag(tag)
		if err != nil {
			continue
		}
		key := v.String()
		if earlier, ok := byVersion[key]; ok {
			if tag < earlier {
				byVersion[key] = tag
			}
			continue
		}
		byVersion[key] = tag
		versions = append(versions, v)
	}
	return versions, byVersion
}

// follow goes from the descriptor to the manifest for the platform.
func (i *Installer) follow(ctx context.Context, r *Resolution, desc ocispec.Descriptor) error {
	content, err := r.source.FetchAll(ctx, desc, artifact.ManifestLimit)
	if err != nil {
		return err
	}
	top := admission.Document{Descriptor: desc, Content: content}
	if !artifact.IsIndex(desc.MediaType) {
		return i.single(ctx, r, top)
	}
	index, err := artifact.DecodeIndex(desc.MediaType, content)
	if err != nil {
		return fmt.Errorf("%w: index %s: %w", errNotPlugin, desc.Digest, err)
	}
	chosen, err := i.choose(ctx, r.source, index)
	if err != nil {
		return err
	}
	r.Platform = chosen.platform.String()
	r.Explanation = append(r.Explanation, chosen.why)
	content, err = fetchEntry(ctx, r.source, index, chosen.desc)
	if err != nil {
		return err
	}
	manifest := admission.Document{Descriptor: chosen.desc, Content: content}
	r.Index = desc.Digest
	r.chain, err = admission.NewChain(&top, manifest)
	return err
}

// single takes a manifest that is in no index. Its platform is in its config.
func (i *Installer) single(ctx context.Context, r *Resolution, document admission.Document) error {
	chain, err := admission.NewChain(nil, document)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotPlugin, err)
	}
	platform, err := configPlatform(ctx, r.source, chain.Manifest())
	if err != nil {
		return fmt.Errorf("%w: a single manifest, and its config does not say for which platform: %w", errNoPlatform, err)
	}
	if rankOf(i.platform, platform) < 0 && !i.anyPlatform {
		return fmt.Errorf("%w: have %s, want %s", errNoPlatform, platform, i.platform)
	}
	r.chain, r.Platform = chain, platform.String()
	r.Explanation = append(r.Explanation, fmt.Sprintf("It is a single manifest, for %s by its config.", platform))
	return nil
}

func fetchDocument(ctx context.Context, src Source, desc ocispec.Descriptor) (admission.Document, error) {
	content, err := src.FetchAll(ctx, desc, artifact.ManifestLimit)
	return admission.Document{Descriptor: desc, Content: content}, err
}

// describe fills in what the chain says: the layer and the version, which has to
// be the one that was chosen.
func (r *Resolution) describe(ctx context.Context) error {
	p, err := findPayload(ctx, r.source, r.chain, r.Platform)
	if err != nil {
		return err
	}
	r.payload = p
	r.Manifest = r.chain.ManifestDigest()
	r.Layer, r.Size = p.layers[0].Digest, p.layers[0].Size
	if r.Executable, err = executableOf(r.chain); err != nil {
		return err
	}
	if r.Version, r.ownVersion, err = p.settleVersion(r.found); err != nil {
		return err
	}
	need, err := needs(r.chain)
	if err != nil {
		return err
	}
	if !r.ownVersion {
		r.Explanation = append(r.Explanation, "The artifact states no version; this is its tag's, which no signature covers.")
	}
	if need != "" {
		r.Explanation = append(r.Explanation, need)
	}
	constraint, constrained := r.Reference.Constraint()
	if constrained && !constraint.Match(r.Version) {
		return fmt.Errorf("%w: %s is version %s, which does not satisfy %q", errNoVersion, r.Digest(), r.Version, constraint)
	}
	return nil
}

// manifestOnly is the resolution by what the manifest says, without the index
// that nobody vouches for. That may say more, but nothing else.
func (r Resolution) manifestOnly(ctx context.Context) (Resolution, error) {
	before := r.Version
	r.chain = r.chain.ManifestOnly()
	r.Explanation = slices.Clone(r.explanation)
	if err := r.describe(ctx); err != nil {
		return Resolution{}, fmt.Errorf("by the signed manifest alone: %w", err)
	}
	if !r.Version.Equal(before) {
		return Resolution{}, fmt.Errorf("%w: the index, which no signature covers, says version %s, the signed manifest says %s", errMismatch, before, r.Version)
	}
	if !artifact.IsConfig(r.chain.Manifest().Config.MediaType) {
		return r, nil
	}
	own, err := configPlatform(ctx, r.source, r.chain.Manifest())
	if errors.Is(err, artifact.ErrPlatform) {
		return r, nil // it says none
	}
	if err != nil {
		return Resolution{}, err
	}
	want, err := artifact.ReadPlatform(r.Platform)
	if err != nil {
		return Resolution{}, err
	}
	if own.OS() != want.OS() || own.Arch() != want.Arch() {
		return Resolution{}, fmt.Errorf("%w: the index, which no signature covers, says %s, the signed manifest says %s", errMismatch, want, own)
	}
	return r, nil
}
