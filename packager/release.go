package packager

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/scratch"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
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

// Release packages the executables of a folder and publishes them, in this order:
// layers, manifests, index, bills of materials, signatures, attestations, the
// version tag, the aliases. Only the last two can be seen by those who install,
// so an interrupted release is not seen at all. Running it again is safe:
// what is there already is not sent again.
//
// It is [Pack] to a temporary folder, then [Push] from there with signatures on the
// way. Errors are those of [Pack], [Push] and [Sign].
func Release(ctx context.Context, from *dist.Dist, version Version, repo Repository, opts ReleaseOptions) (_ *Released, err error) {
	if len(opts.Predicates) > 0 && opts.Signer == nil {
		return nil, fmt.Errorf("%w: attestations need a key or an identity to sign them", ErrSigningOptions)
	}
	work, err := scratch.New()
	if err != nil {
		return nil, fmt.Errorf("the folder for temporary files: %w", err)
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	layout := filepath.Join(work.Dir, "layout")
	b, err := pack(ctx, from, version, layout, opts.PackOptions)
	if err != nil {
		return nil, err
	}
	out := newReleased(b, repo)
	out.DryRun, out.Warnings = opts.DryRun, from.Warnings()
	p, err := newPublication(ctx, layout, repo, PushOptions{
		Replace: opts.Replace, SkipAliases: opts.SkipAliases, Vouch: opts.Vouch, MountFrom: opts.MountFrom, Report: opts.Report,
	}, &out.Pushed)
	if err != nil {
		return nil, err
	}
	if opts.DryRun {
		return out, out.plan(ctx, p, opts)
	}
	if err := p.check(ctx); err != nil {
		return nil, err
	}
	if err := p.content(ctx); err != nil {
		return nil, err
	}
	if err := out.evidence(ctx, p, opts); err != nil {
		return nil, err
	}
	if err := p.tags(ctx); err != nil {
		return nil, err
	}
	return out, nil
}

func newReleased(b *built, repo Repository) *Released {
	out := &Released{
		Reference: fmt.Sprintf("%s:%s@%s", repo.Name(), b.version, b.index.desc.Digest), Created: b.metadata.told(),
		Platforms: b.results(), Documents: []string{}, Signed: []digest.Digest{}, Attested: []string{},
	}
	for _, d := range b.documents {
		if d.subject.Digest == b.index.desc.Digest {
			out.Documents = append(out.Documents, d.content.desc.MediaType)
		}
	}
	return out
}

// evidence attaches the bills of materials, signs index and manifests, and attests
// the bills and the predicates.
func (r *Released) evidence(ctx context.Context, p *publication, opts ReleaseOptions) error {
	if opts.Signer == nil {
		return p.referrers(ctx)
	}
	e := newEvidence(p.to, opts.Signer, SignOptions{Format: opts.Format, Signatures: opts.Signatures, Report: p.report})
	subjects, err := p.subjects()
	if err != nil {
		return err
	}
	if err := e.sign(ctx, subjects); err != nil {
		return err
	}
	var statements []statement
	for _, subject := range subjects {
		about := e.about(subject)
		if about.documents, err = referrersOf(ctx, p.from, subject); err != nil {
			return err
		}
		bills, err := attachedSBOMs(ctx, p.from, subject)
		if err != nil {
			return err
		}
		statements = append(statements, bills...)
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

// plan fills in what a release would do.
func (r *Released) plan(ctx context.Context, p *publication, opts ReleaseOptions) error {
	have, err := checkVersionTag(ctx, p.to, r.Version, p.index, opts.Replace)
	if unlessHidden(err) != nil {
		return err
	}
	if have != r.Digest {
		r.Replaced = have
	}
	for _, result := range r.Platforms {
		there, err := p.to.Exists(ctx, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayerGzip, Digest: result.Layer, Size: result.Size})
		if err != nil {
			return err
		}
		t := &r.Uploaded
		if there {
			t = &r.Present
		}
		t.Blobs++
		t.Bytes += result.Size
	}
	if opts.Signer != nil {
		subjects, err := p.subjects()
		if err != nil {
			return err
		}
		for _, s := range subjects {
			r.Signed = append(r.Signed, s.Digest)
		}
		for _, d := range r.Documents {
			r.Attested = append(r.Attested, artifact.PredicateOf(d))
		}
		for _, p := range opts.Predicates {
			r.Attested = append(r.Attested, p.Type)
		}
		slices.Sort(r.Attested)
	}
	if opts.SkipAliases {
		return nil
	}
	aliases, warnings, err := p.aliaser.plan(ctx)
	r.Aliases, r.Warnings = aliases, append(r.Warnings, warnings...)
	return err
}
