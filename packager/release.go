package packager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// ReleaseOptions say what [Release] does beside packaging and pushing.
type ReleaseOptions struct {
	PackOptions
	// Signer signs the artifact and its attestations; nil publishes without a
	// signature.
	Signer *Signer
	// Format and Signatures are those of [SignOptions].
	Format     SignatureFormat
	Signatures Repository
	// Predicates are attested about the whole release, for instance
	// [Build.Provenance]. They need a Signer.
	Predicates []Predicate
	// Replace, SkipAliases and Vouch are those of [PushOptions].
	Replace, SkipAliases bool
	Vouch                Vouch
	// MountFrom is that of [PushOptions].
	MountFrom []string
	// DryRun packages and looks at the registry, and changes nothing there.
	DryRun bool
}

// Released says what [Release] did, or with DryRun would do.
type Released struct {
	// Reference is "host[:port]/path:version@digest".
	Reference string `json:"reference"`
	Pushed
	// DryRun is set if nothing was changed.
	DryRun bool `json:"dryRun,omitempty"`
	// Created is the time that the artifact carries; nil if nothing tells one.
	Created *time.Time `json:"created,omitempty"`
	// Platforms in the order of the index.
	Platforms []PlatformResult `json:"platforms"`
	// Documents are the types of the bills of materials that hang off each
	// manifest.
	Documents []string `json:"documents"`
	// Signed are the digests that carry a signature.
	Signed []digest.Digest `json:"signed"`
	// Signatures is the repository of signatures and attestations, if that is not
	// the artifact's.
	Signatures string `json:"signatures,omitempty"`
	// Attested are the predicate types.
	Attested []string `json:"attested"`
	// Bundles are the attestations themselves, for those who show them elsewhere,
	// too.
	Bundles []SignedBundle `json:"-"`
}

// layerMemory is what compressed layers may take, in bytes, for all platforms
// together.
const layerMemory = 44 << 20

// Release packages the executables of dist and publishes them, in this order:
// layers, manifests, index, bills of materials, signatures, attestations, the
// version tag, the aliases. Only the last two can be seen by those who install,
// so an interrupted release is not seen at all. Running it again is safe:
// what is there already is not made again.
//
// Nothing is written to the disk but the cache of the options. Errors are those
// of [Pack], [Push] and [Sign].
func Release(ctx context.Context, dist *Dist, version Version, repo Repository, opts ReleaseOptions) (*Released, error) {
	out := &Released{DryRun: opts.DryRun, Documents: []string{}, Signed: []digest.Digest{}, Attested: []string{}}
	out.Repository, out.Version, out.Aliases = repo.Name(), version, []Alias{}
	if len(opts.Predicates) > 0 && opts.Signer == nil {
		return nil, fmt.Errorf("%w: attestations need a key or an identity to sign them", ErrSigningOptions)
	}
	opts.Report = out.count(opts.Report)
	repo = withMounts(repo, opts.MountFrom)

	aliaser := newAliaser(repo, held{plugin: true, version: version, title: cmp.Or(opts.Metadata.Title, dist.title())}, opts.Vouch)
	if err := out.checkAliases(ctx, aliaser, opts); err != nil {
		return nil, err
	}
	b, err := buildFor(ctx, dist, version, repo, opts)
	if err != nil {
		return nil, err
	}
	aliaser.own.desc = b.index.desc
	out.Digest, out.Created, out.Platforms, out.Warnings = b.index.desc.Digest, b.metadata.told(), b.results(), dist.Warnings()
	out.Reference = fmt.Sprintf("%s:%s@%s", repo.Name(), version, out.Digest)
	if err := out.check(ctx, repo, b.index, opts.Replace); err != nil {
		return nil, err
	}
	if opts.DryRun {
		out.Uploaded, out.Present = Transfer{}, Transfer{}
		return out, b.plan(ctx, aliaser, out, opts)
	}
	if err := b.push(ctx, repo, opts.Report); err != nil {
		return nil, err
	}
	out.documents(b)
	if err := out.sign(ctx, repo, b, opts); err != nil {
		return nil, err
	}
	limits, err := namedLimits(ctx, repo, b.index.desc)
	if err != nil {
		return nil, err
	}
	out.Warnings = append(out.Warnings, limits...)
	if err := out.publish(ctx, aliaser, b.index, PushOptions{Replace: opts.Replace, SkipAliases: opts.SkipAliases}, opts.Report); err != nil {
		return nil, err
	}
	return out, nil
}

// checkAliases refuses a release whose aliases hold something else, before
// anything is built and uploaded. What the version's tag points to, if that is
// there, is taken for what will be built: if it is not, the release ends anyway,
// unless it replaces the version.
func (r *Released) checkAliases(ctx context.Context, a *aliaser, opts ReleaseOptions) error {
	if opts.SkipAliases || opts.DryRun || a.own.version.Prerelease() {
		return nil
	}
	have, err := a.repo.Resolve(ctx, a.own.version.String())
	if unlessHidden(err) != nil && !errors.Is(err, ociregistry.ErrNotFound) {
		return fmt.Errorf("looking for version %s: %w", a.own.version, err)
	}
	if !opts.Replace {
		a.own.desc = have
	}
	_, _, err = a.plan(ctx)
	return err
}

// buildFor builds into the repository, or for a plan into nothing. A version
// that is there already, with other content, is noticed before anything is
// uploaded: then the artifact is first built into nothing.
func buildFor(ctx context.Context, dist *Dist, version Version, repo Repository, opts ReleaseOptions) (*built, error) {
	quiet := opts.PackOptions
	quiet.Report = func(Event) {}
	if opts.DryRun {
		return build(ctx, dist, version, nullStore{}, quiet)
	}
	_, err := repo.Resolve(ctx, version.String())
	if unlessHidden(err) != nil && !errors.Is(err, ociregistry.ErrNotFound) {
		return nil, fmt.Errorf("looking for version %s: %w", version, err)
	}
	if err == nil && !opts.Replace {
		b, err := build(ctx, dist, version, nullStore{}, quiet)
		if err != nil {
			return nil, err
		}
		if _, err := checkVersionTag(ctx, repo, version, b.index, false); err != nil {
			return nil, err
		}
		if complete, err := b.layersIn(ctx, repo, opts.Report); complete || err != nil {
			return b, err
		}
	}
	store := &remoteStore{to: repo, memory: &chunks{left: layerMemory / chunkSize}, report: opts.Report}
	return build(ctx, dist, version, store, opts.PackOptions)
}

// layersIn says whether all layers are in the repository.
func (b *built) layersIn(ctx context.Context, repo Target, report func(Event)) (bool, error) {
	for _, p := range b.platforms {
		there, err := repo.Exists(ctx, plain(p.layer))
		if err != nil || !there {
			return false, err
		}
	}
	for _, p := range b.platforms {
		report(Event{Kind: EventReused, Subject: p.in.platform.String(), Size: p.layer.Size})
	}
	return true, nil
}

func (r *Released) documents(b *built) {
	for _, ref := range b.referrers {
		if ref.subject.Digest == b.index.desc.Digest {
			r.Documents = append(r.Documents, ref.document.desc.MediaType)
		}
	}
}

// sign signs index and manifests, attests the documents that were made here, and
// attaches those.
func (r *Released) sign(ctx context.Context, repo Repository, b *built, opts ReleaseOptions) error {
	if opts.Signer == nil {
		return b.attach(ctx, repo, opts.Report)
	}
	subjects := b.subjects()
	e := newEvidence(repo, opts.Signer, SignOptions{Format: opts.Format, Signatures: opts.Signatures, Report: opts.Report})
	e.attach(b.referrers)
	if err := e.sign(ctx, subjects); err != nil {
		return err
	}
	var statements []statement
	for _, ref := range b.referrers {
		statements = append(statements, statement{
			artifact.PredicateOf(ref.document.desc.MediaType), ref.document.content, []ocispec.Descriptor{ref.subject},
		})
	}
	if err := e.attest(ctx, append(statements, aboutAll(opts.Predicates, subjects)...)); err != nil {
		return err
	}
	signed, err := e.publish(ctx)
	if err != nil {
		return err
	}
	r.Signed, r.Signatures, r.Bundles = signed.Manifests, signed.Signatures, signed.Bundles
	r.Attested, r.Warnings = append(r.Attested, signed.Predicates...), append(r.Warnings, signed.Warnings...)
	return nil
}

// subjects are what gets signed: the index and every manifest.
func (b *built) subjects() []ocispec.Descriptor {
	all := []ocispec.Descriptor{plain(b.index.desc)}
	for _, p := range b.platforms {
		all = append(all, plain(p.manifest.desc))
	}
	return all
}

// plan fills in what a release would do.
func (b *built) plan(ctx context.Context, a *aliaser, out *Released, opts ReleaseOptions) error {
	out.documents(b)
	for _, p := range b.platforms {
		there, err := a.repo.Exists(ctx, plain(p.layer))
		if err != nil {
			return err
		}
		t := &out.Uploaded
		if there {
			t = &out.Present
		}
		t.Blobs++
		t.Bytes += p.layer.Size
	}
	if opts.Signer != nil {
		for _, s := range b.subjects() {
			out.Signed = append(out.Signed, s.Digest)
		}
		for _, d := range out.Documents {
			out.Attested = append(out.Attested, artifact.PredicateOf(d))
		}
		for _, p := range opts.Predicates {
			out.Attested = append(out.Attested, p.Type)
		}
		slices.Sort(out.Attested)
	}
	if opts.SkipAliases {
		return nil
	}
	var err error
	var warnings []Warning
	out.Aliases, warnings, err = a.plan(ctx)
	out.Warnings = append(out.Warnings, warnings...)
	return err
}
