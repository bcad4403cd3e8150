package packager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/progress"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// PushOptions change what [Push] does. The zero value is right for most.
type PushOptions struct {
	// Replace moves a version tag that is published with other content. Those
	// who installed the version before keep what they have, and those who
	// pinned its digest may find nothing.
	Replace bool
	// SkipAliases leaves "1.2", "1" and "latest" alone.
	SkipAliases bool
	// Vouch says which of the higher versions, and of what the aliases point to,
	// count as this publisher's. Nil counts every version of the same plugin.
	Vouch Vouch
	// MountFrom are repositories of the same registry, without the host, that
	// may have the blobs already, such as the one that a release candidate was
	// published to.
	MountFrom []string
	// Parallel is how many blobs are uploaded at a time. Default: 4.
	Parallel int
	// Report is told of every step. It is called from several goroutines, one
	// at a time.
	Report func(Event)
}

// Pushed says what [Push] did.
type Pushed struct {
	// Repository is "host[:port]/path".
	Repository string `json:"repository"`
	// Version and Digest are what is published now.
	Version Version       `json:"version"`
	Digest  digest.Digest `json:"digest"`
	// Uploaded and Present count blobs and their bytes.
	Uploaded Transfer `json:"uploaded"`
	Present  Transfer `json:"present"`
	// Replaced is the digest that the version had before, with --replace.
	Replaced digest.Digest `json:"replaced,omitempty"`
	// Aliases are the tags that may point to the version, and where they do.
	Aliases []Alias `json:"aliases"`
	// Warnings name what the registry cannot do.
	Warnings []dist.Warning `json:"warnings,omitempty"`
}

// Transfer counts blobs.
type Transfer struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
}

// count keeps the transfers of a push.
func (p *Pushed) count(report func(Event)) func(Event) {
	seen := map[string]bool{}
	return serialised(func(e Event) {
		t := &p.Present
		switch e.Kind {
		case EventUploaded:
			t = &p.Uploaded
			fallthrough
		case EventPresent:
			if seen[e.Subject] {
				break // many things may hold one blob
			}
			seen[e.Subject] = true
			t.Blobs++
			t.Bytes += e.Size
		default:
		}
		reporter(report)(e)
	})
}

// Push copies the artifact in the layout folder to a repository: blobs,
// manifests, index, then what hangs off them, then the version tag, then the
// aliases. So a tag never points at content that is not there, and an
// interrupted push can be repeated: what is there is not sent again.
//
// A version that is published with another digest is refused with
// [*PublishedError], unless the options say Replace. Of two that publish a version
// at once, one has that error; see [moveVersionTag] for what registries leave open.
//
// Aliases are computed from what the tags of the repository hold. They move
// forward only, and never to a prerelease or to what is not a version of the same
// plugin. One that holds something else is an [*AliasError], before anything is
// pushed. They are looked at again after they were moved, so that of two pushes at
// once the higher version wins in the end.
func Push(ctx context.Context, layoutDir string, to Repository, opts PushOptions) (*Pushed, error) {
	p, err := newPublication(ctx, layoutDir, to, opts, &Pushed{})
	if err != nil {
		return nil, err
	}
	if err := p.check(ctx); err != nil {
		return nil, err
	}
	if err := p.content(ctx); err != nil {
		return nil, err
	}
	if err := p.referrers(ctx); err != nil {
		return nil, err
	}
	return p.done, p.tags(ctx)
}

// publication is a version on its way from a layout to a repository. Its methods are
// the steps, in their order: check, content, referrers or signatures, tags.
type publication struct {
	from    *ociregistry.Layout
	to      Repository
	index   blob
	aliaser *aliaser
	opts    PushOptions
	report  func(Event)
	done    *Pushed
}

func newPublication(ctx context.Context, layoutDir string, to Repository, opts PushOptions, done *Pushed) (*publication, error) {
	layout, err := ociregistry.OpenLayout(ctx, layoutDir)
	if err != nil {
		return nil, err
	}
	version, index, err := theVersion(ctx, layout)
	if err != nil {
		return nil, err
	}
	own, err := lookInto(ctx, layout, version.String())
	if err != nil {
		return nil, err
	}
	own.version = version
	done.Repository, done.Version, done.Digest, done.Aliases = to.Name(), version, index.desc.Digest, []Alias{}
	return &publication{
		from: layout, to: withMounts(to, opts.MountFrom), index: index, aliaser: newAliaser(to, own, opts.Vouch),
		opts: opts, report: done.count(opts.Report), done: done,
	}, nil
}

// check refuses a version that is published with other content, and aliases that
// hold something else, before anything is uploaded.
func (p *publication) check(ctx context.Context) error {
	have, err := checkVersionTag(ctx, p.to, p.done.Version, p.index, p.opts.Replace)
	if unlessHidden(err) != nil {
		return err
	}
	if have != p.index.desc.Digest {
		p.done.Replaced = have
	}
	if p.opts.SkipAliases {
		return nil
	}
	_, _, err = p.aliaser.plan(ctx)
	return err
}

// tags moves the tags; everything that they lead to is there.
func (p *publication) tags(ctx context.Context) error {
	limits, err := namedLimits(ctx, p.to, p.index.desc)
	if err != nil {
		return err
	}
	p.done.Warnings = append(p.done.Warnings, limits...)
	replaced, err := moveVersionTag(ctx, p.to, p.done.Version, p.index, p.opts.Replace, p.report)
	if err != nil {
		return err
	}
	still := func() error { return stillPublished(ctx, p.to, p.done.Version, p.index, replaced) }
	if p.opts.SkipAliases {
		return still()
	}
	var warnings []dist.Warning
	p.done.Aliases, warnings, err = p.aliaser.settle(ctx, still, p.report)
	p.done.Warnings = append(p.done.Warnings, warnings...)
	if err == nil {
		err = still()
	}
	switch {
	case errors.Is(err, ErrPublished):
		return errors.Join(err, p.aliaser.giveWay(ctx, p.report))
	case err != nil:
		return fmt.Errorf("version %s is published, its aliases are not all moved (run the same command again): %w", p.done.Version, err)
	}
	return nil
}

// namedLimits names what the registry lacks and how that was got round.
func namedLimits(ctx context.Context, repo Tags, index ocispec.Descriptor) ([]dist.Warning, error) {
	tag := artifact.ReferrersTag(index.Digest)
	_, err := repo.Resolve(ctx, tag)
	if errors.Is(err, ociregistry.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []dist.Warning{{Subject: tag, Message: "the registry announces no referrers API, so signatures and attestations are listed under tags such as this one; exclude tags that begin with sha256- from cleanup rules"}}, nil
}

// theVersion finds the one plugin in a layout.
func theVersion(ctx context.Context, layout *ociregistry.Layout) (Version, blob, error) {
	tags, err := layout.Tags(ctx)
	if err != nil {
		return Version{}, blob{}, err
	}
	var found Version
	for _, tag := range tags {
		v, err := ParseVersion(tag)
		if err != nil || v.String() != tag {
			continue
		}
		if !found.IsZero() {
			return Version{}, blob{}, fmt.Errorf("%s: %w: it holds several versions, %s and %s", layout.Name(), ErrNotPlugin, found, v)
		}
		found = v
	}
	if found.IsZero() {
		return Version{}, blob{}, fmt.Errorf("%s: %w: no tag in it is a version", layout.Name(), ErrNotPlugin)
	}
	desc, err := layout.Resolve(ctx, found.String())
	if err != nil {
		return Version{}, blob{}, err
	}
	content, err := layout.FetchAll(ctx, desc, artifact.ManifestLimit)
	return found, blob{desc, content}, err
}

// content copies the blobs, the manifests and the index.
func (p *publication) content(ctx context.Context) error {
	decoded, err := artifact.DecodeIndex(p.index.desc.MediaType, p.index.content)
	if err != nil {
		return err
	}
	manifests := make([]blob, len(decoded.Manifests))
	var blobs []ocispec.Descriptor
	layers := map[digest.Digest]string{}
	for i, desc := range decoded.Manifests {
		content, err := p.from.FetchAll(ctx, desc, artifact.ManifestLimit)
		if err != nil {
			return err
		}
		manifests[i] = blob{plain(desc), content}
		m, err := artifact.DecodeManifest(desc.MediaType, content)
		if err != nil {
			return fmt.Errorf("manifest %s: %w", desc.Digest, err)
		}
		blobs = append(blobs, m.Config)
		for _, l := range m.Layers {
			if !artifact.StaysAtOrigin(l) {
				blobs = append(blobs, l)
				layers[l.Digest] = platformName(desc)
			}
		}
	}
	if err := p.blobs(ctx, blobs, layers); err != nil {
		return err
	}
	for _, m := range append(manifests, p.index) {
		if err := p.to.PushManifest(ctx, m.desc, m.content); err != nil {
			return fmt.Errorf("pushing manifest %s: %w", m.desc.Digest, err)
		}
	}
	return nil
}

// referrers attaches what refers to the index and to the manifests of the layout.
func (p *publication) referrers(ctx context.Context) error {
	subjects, err := p.subjects()
	if err != nil {
		return err
	}
	for _, subject := range subjects {
		found, err := referrersOf(ctx, p.from, subject)
		if err != nil {
			return err
		}
		if err := attach(ctx, p.to, subject, found, p.report); err != nil {
			return err
		}
	}
	return nil
}

// subjects are the index and all its manifests.
func (p *publication) subjects() ([]ocispec.Descriptor, error) {
	decoded, err := artifact.DecodeIndex(p.index.desc.MediaType, p.index.content)
	all := []ocispec.Descriptor{plain(p.index.desc)}
	for _, m := range decoded.Manifests {
		all = append(all, plain(m))
	}
	return all, err
}

// platformName is that of an entry of an index.
func platformName(entry ocispec.Descriptor) string {
	if entry.Platform != nil {
		if p, err := artifact.PlatformFromOCI(*entry.Platform); err == nil {
			return p.String()
		}
	}
	return entry.Digest.String()
}

// uploading tells once that an upload begins, which for a layer may take long, and
// how far it is.
func uploading(report func(Event), name string, desc ocispec.Descriptor, open func() (io.ReadCloser, error)) func() (io.ReadCloser, error) {
	e := Event{Kind: EventUploading, Subject: name, Size: desc.Size}
	begin := sync.OnceFunc(func() { report(e) })
	return func() (io.ReadCloser, error) {
		begin()
		content, err := open()
		if err != nil {
			return nil, err
		}
		return progress.ReadCloser(content, e.Size, e.reporting(report)), nil
	}
}

// blobs copies blobs; layers are the names of those that people wait for.
func (p *publication) blobs(ctx context.Context, blobs []ocispec.Descriptor, layers map[digest.Digest]string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cmp.Or(max(p.opts.Parallel, 0), 4))
	seen := map[digest.Digest]bool{}
	for _, desc := range blobs {
		if seen[desc.Digest] {
			continue
		}
		seen[desc.Digest] = true
		g.Go(func() error {
			open := func() (io.ReadCloser, error) { return p.from.Fetch(ctx, desc) }
			if name, ok := layers[desc.Digest]; ok {
				open = uploading(p.report, name, desc, open)
			}
			return copyBlob(ctx, p.to, plain(desc), open, p.report)
		})
	}
	return g.Wait()
}

// plain keeps of a descriptor what identifies content.
func plain(d ocispec.Descriptor) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
}
