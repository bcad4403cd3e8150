package packager

import (
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
	Warnings []Warning `json:"warnings,omitempty"`
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
		case EventPresent, EventReused:
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
	done := &Pushed{Repository: to.Name(), Version: version, Digest: index.desc.Digest}
	report := done.count(opts.Report)
	if err := done.check(ctx, to, index, opts.Replace); err != nil {
		return nil, err
	}
	aliaser := newAliaser(to, own, opts.Vouch)
	if !opts.SkipAliases {
		if _, _, err := aliaser.plan(ctx); err != nil {
			return nil, err
		}
	}
	if err := copyIndex(ctx, layout, withMounts(to, opts.MountFrom), index, opts.Parallel, report); err != nil {
		return nil, err
	}
	if done.Warnings, err = namedLimits(ctx, to, index.desc); err != nil {
		return nil, err
	}
	return done, done.publish(ctx, aliaser, index, opts, report)
}

// check refuses a version that is published with other content, and notes what is
// going to be replaced.
func (p *Pushed) check(ctx context.Context, to Repository, index blob, replace bool) error {
	have, err := checkVersionTag(ctx, to, p.Version, index, replace)
	if have != index.desc.Digest {
		p.Replaced = have
	}
	return unlessHidden(err)
}

// publish moves the tags; everything that they lead to is there.
func (p *Pushed) publish(ctx context.Context, a *aliaser, index blob, opts PushOptions, report func(Event)) error {
	replaced, err := moveVersionTag(ctx, a.repo, p.Version, index, opts.Replace, report)
	if err != nil {
		return err
	}
	still := func() error { return stillPublished(ctx, a.repo, p.Version, index, replaced) }
	if opts.SkipAliases {
		return still()
	}
	var warnings []Warning
	p.Aliases, warnings, err = a.settle(ctx, still, report)
	p.Warnings = append(p.Warnings, warnings...)
	if err == nil {
		err = still()
	}
	switch {
	case errors.Is(err, ErrPublished):
		return errors.Join(err, a.giveWay(ctx, report))
	case err != nil:
		return fmt.Errorf("version %s is published, its aliases are not all moved (run the same command again): %w", p.Version, err)
	}
	return nil
}

// namedLimits names what the registry lacks and how that was got round.
func namedLimits(ctx context.Context, repo Tags, index ocispec.Descriptor) ([]Warning, error) {
	tag := artifact.ReferrersTag(index.Digest)
	_, err := repo.Resolve(ctx, tag)
	if errors.Is(err, ociregistry.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []Warning{{tag, "the registry announces no referrers API, so signatures and attestations are listed under tags such as this one; exclude tags that begin with sha256- from cleanup rules"}}, nil
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

// copyIndex copies an index, all that it names, and what hangs off any of it.
func copyIndex(ctx context.Context, from Content, to Target, index blob, parallel int, report func(Event)) error {
	decoded, err := artifact.DecodeIndex(index.desc.MediaType, index.content)
	if err != nil {
		return err
	}
	if parallel <= 0 {
		parallel = 4
	}
	manifests := make([]blob, len(decoded.Manifests))
	var blobs []ocispec.Descriptor
	layers := map[digest.Digest]string{}
	for i, desc := range decoded.Manifests {
		content, err := from.FetchAll(ctx, desc, artifact.ManifestLimit)
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
	if err := copyBlobs(ctx, from, to, blobs, layers, parallel, report); err != nil {
		return err
	}
	for _, m := range append(manifests, index) {
		if err := to.PushManifest(ctx, m.desc, m.content); err != nil {
			return fmt.Errorf("pushing manifest %s: %w", m.desc.Digest, err)
		}
	}
	for _, m := range append(manifests, index) {
		if err := copyReferrers(ctx, from, to, m.desc, report); err != nil {
			return err
		}
	}
	return nil
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

// copyBlobs copies blobs; layers are the names of those that people wait for.
func copyBlobs(ctx context.Context, from Content, to Target, blobs []ocispec.Descriptor, layers map[digest.Digest]string, parallel int, report func(Event)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	seen := map[digest.Digest]bool{}
	for _, desc := range blobs {
		if seen[desc.Digest] {
			continue
		}
		seen[desc.Digest] = true
		g.Go(func() error {
			open := func() (io.ReadCloser, error) { return from.Fetch(ctx, desc) }
			if name, ok := layers[desc.Digest]; ok {
				open = uploading(report, name, desc, open)
			}
			uploaded, err := to.PushBlob(ctx, plain(desc), open)
			if err != nil {
				return fmt.Errorf("pushing blob %s: %w", desc.Digest, err)
			}
			report(blobEvent(desc, uploaded))
			return nil
		})
	}
	return g.Wait()
}

func copyReferrers(ctx context.Context, from Content, to Target, subject ocispec.Descriptor, report func(Event)) error {
	referrers, err := from.Referrers(ctx, subject)
	if err != nil {
		return err
	}
	var manifests []ociregistry.Manifest
	for _, desc := range referrers {
		content, err := from.FetchAll(ctx, desc, artifact.ManifestLimit)
		if err != nil {
			return err
		}
		m, err := artifact.DecodeManifest(desc.MediaType, content)
		if err != nil {
			return fmt.Errorf("referrer %s: %w", desc.Digest, err)
		}
		if err := copyBlobs(ctx, from, to, append(m.Layers, m.Config), nil, 1, report); err != nil {
			return err
		}
		manifests = append(manifests, ociregistry.Manifest{Descriptor: plain(desc), Content: content})
	}
	if len(manifests) == 0 {
		return nil
	}
	if err := to.Attach(ctx, subject, manifests...); err != nil {
		return err
	}
	for _, m := range manifests {
		report(Event{Kind: EventReferrer, Subject: subject.Digest.String(), Size: m.Descriptor.Size})
	}
	return nil
}

// plain keeps of a descriptor what identifies content.
func plain(d ocispec.Descriptor) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
}
