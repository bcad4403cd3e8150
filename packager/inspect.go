package packager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// Source is what [Inspect] reads: a [Repository], or a layout of [OpenLayout].
type Source interface {
	Content
	Tags
}

// OpenLayout opens an OCI image layout folder, such as [Pack] makes.
func OpenLayout(ctx context.Context, dir string) (Source, error) {
	return ociregistry.OpenLayout(ctx, dir)
}

// Report is what is published under a reference. Nothing in it is verified:
// who signed is what the signatures say of themselves.
type Report struct {
	Repository string        `json:"repository"`
	Digest     digest.Digest `json:"digest"`
	Version    string        `json:"version,omitempty"`
	// Tags are the version's tag and those aliases that point to the artifact.
	Tags []string `json:"tags"`
	// Annotations of the index, or of the single manifest.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Protocol, Library and MinimumRunner are what the publisher says about the
	// plugin's contract with its host.
	Protocol      *int   `json:"protocol,omitempty"`
	Library       string `json:"library,omitempty"`
	MinimumRunner string `json:"minimumRunner,omitempty"`

	Platforms    []InspectedPlatform    `json:"platforms"`
	Signatures   []InspectedSignature   `json:"signatures"`
	Attestations []InspectedAttestation `json:"attestations"`
	Documents    []InspectedDocument    `json:"documents"`
	// Unread is what could not be read of all this.
	Unread []Unread `json:"unread,omitempty"`
}

// Unread is something about an artifact that could not be read.
type Unread struct {
	// Subject is "index" or a platform, or "" for the artifact.
	Subject string `json:"subject,omitempty"`
	// What is "manifest", "files", "aliases", "referrers" for their list,
	// "referrer", "evidence" for what a referrer or a tag holds, a tag, or "more" for
	// all that was too much after what was read.
	What   string        `json:"what"`
	Digest digest.Digest `json:"digest,omitempty"`
	Reason string        `json:"reason"`
}

// Complete reports whether all signatures, attestations and documents were read.
func (r *Report) Complete() bool {
	return !slices.ContainsFunc(r.Unread, func(u Unread) bool { return u.What != "manifest" && u.What != "files" && u.What != "aliases" })
}

// InspectedPlatform is one entry of the index, or the single manifest.
type InspectedPlatform struct {
	Platform string        `json:"platform"`
	Digest   digest.Digest `json:"digest"`
	// Layer is the layer with the plugin, Size its compressed size in bytes.
	Layer digest.Digest `json:"layer,omitempty"`
	Size  int64         `json:"size,omitempty"`
	// Version is the layer's annotation, by which the runner's installer names
	// the folder; empty if the image was not made as a fleeting plugin.
	Version string `json:"version,omitempty"`
	// Files are all that the layer holds; nil if they were not looked at.
	Files []LayerFile `json:"files,omitempty"`
	layer ocispec.Descriptor
	// read reports that the manifest was.
	read bool
}

// InspectOptions change what [Inspect] looks at. The zero value looks at
// everything.
type InspectOptions struct {
	// SkipFiles leaves out the files of the layers, for which the layers of all
	// platforms have to be fetched.
	SkipFiles bool
	// Report is told of each layer that is about to be fetched.
	Report func(Event)
	// Signatures is a repository in which signatures and attestations are looked
	// for, too; nil for none.
	Signatures Source
}

// InspectedSignature is one signature.
type InspectedSignature struct {
	// Subject is "index" or a platform.
	Subject string `json:"subject"`
	// Form is "tag" or "bundle".
	Form string `json:"form"`
	Claimant
}

// InspectedAttestation is one signed statement.
type InspectedAttestation struct {
	Subject       string `json:"subject"`
	Form          string `json:"form"`
	PredicateType string `json:"predicateType"`
	Claimant
	// Claims are what a SLSA provenance says; nil for other statements. Whoever
	// signs writes them: compare them with the certificate.
	Claims *ProvenanceClaims `json:"claims,omitempty"`
}

// ProvenanceClaims are claims of a SLSA provenance.
type ProvenanceClaims struct {
	Builder  string `json:"builder,omitempty"`
	Source   string `json:"source,omitempty"`
	Revision string `json:"revision,omitempty"`
	// Workflow is what the environment of a build by hand said that it was, see
	// [LocalBuild].
	Workflow string `json:"workflow,omitempty"`
	// LDFlags are the -ldflags that our own provenance says, see [Build].
	LDFlags string `json:"ldflags,omitempty"`
}

// Agree says whether a certificate says the same of builder, source and commit. The
// builder of GitHub's own attestations is the kind of machine, which certificates do
// not name.
func (p ProvenanceClaims) Agree(c Certified) bool {
	machine := strings.HasPrefix(p.Builder, "https://github.com/actions/runner/")
	return (p.Builder == c.BuildSigner || machine) && p.Source == "git+"+c.Repository+"@"+c.Ref && p.Revision == c.Commit
}

// InspectedDocument is a bill of materials.
type InspectedDocument struct {
	Subject   string        `json:"subject"`
	MediaType string        `json:"mediaType"`
	Digest    digest.Digest `json:"digest"`
	Size      int64         `json:"size"`
	// Components counts what is listed, Licensed those with a known licence.
	Components int `json:"components"`
	Licensed   int `json:"licensed"`
}

// Claimant is who says to have signed.
type Claimant struct {
	// Key is the SHA-256 of the public key in DER form, hexadecimal, where the
	// signature says it: that of a tag does not. Identity and Issuer are from the
	// certificate of a keyless signature.
	Key      string `json:"key,omitempty"`
	Identity string `json:"identity,omitempty"`
	Issuer   string `json:"issuer,omitempty"`
	// Certificate is all that the certificate says, nil for a key. Whether a trusted
	// authority issued it is not verified.
	Certificate *Certified `json:"certificate,omitempty"`
	// Logged and Timestamped say whether proofs of time are attached.
	Logged      bool `json:"logged"`
	Timestamped bool `json:"timestamped"`
}

// String names the claimant.
func (c Claimant) String() string {
	switch {
	case c.Identity != "":
		return c.Identity + " (" + c.Issuer + ")"
	case c.Key != "":
		return "key " + c.Key
	}
	return "a key"
}

// Inspect reads what a tag or digest resolves to and its referrers: platforms,
// sizes, versions, the files of each layer, signatures, attestations, bills of
// materials, aliases. Errors are those of the registry and [ErrNotPlugin].
//
// What it reads is bounded in all, since anyone with push access decides how much
// there is: 2,000 requests and 64 MiB of manifests and evidence, 2 GiB of layers.
// What is too much, missing or malformed is in [Report.Unread], beside what could
// be read.
func Inspect(ctx context.Context, from Source, reference string, opts InspectOptions) (*Report, error) {
	from = bounded(from)
	t, err := readTree(ctx, from, reference)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Repository: from.Name(), Digest: t.top.Digest, Annotations: t.annotations, Version: t.annotations[ocispec.AnnotationVersion],
		Tags: []string{}, Platforms: []InspectedPlatform{}, Signatures: []InspectedSignature{},
		Attestations: []InspectedAttestation{}, Documents: []InspectedDocument{},
	}
	if extra, err := artifact.DecodeMetadata(t.annotations[artifact.AnnotationMetadata]); err == nil {
		r.Protocol, r.Library, r.MinimumRunner = extra.Protocol, extra.Library, extra.MinimumRunner
	}
	subjects, err := r.inspectPlatforms(ctx, from, t)
	if err != nil {
		return nil, err
	}
	if !opts.SkipFiles {
		if err := r.listFiles(ctx, from, serialised(opts.Report)); err != nil {
			return nil, err
		}
	}
	r.Tags, err = tagsOf(ctx, from, reference, r.Version, t.top.Digest)
	if err := r.excuse(Unread{What: "aliases"}, err); err != nil {
		return nil, err
	}
	sources := []Source{from}
	if opts.Signatures != nil {
		sources = append(sources, bounded(opts.Signatures))
	}
	for _, s := range subjects {
		for _, src := range sources {
			if err := r.inspectEvidence(ctx, src, s); err != nil {
				return nil, fmt.Errorf("referrers of %s (%s): %w", s.name, s.desc.Digest, err)
			}
		}
	}
	return r, nil
}

// inspectPlatforms reads the manifests, and returns everything that evidence can be
// about. An artifact of which no manifest can be read is an error.
func (r *Report) inspectPlatforms(ctx context.Context, from Source, t tree) ([]named, error) {
	var subjects []named
	if !t.single() {
		subjects = append(subjects, named{"index", t.top})
	}
	var refusal error
	for _, entry := range t.entries {
		p, err := inspectPlatform(ctx, from, entry)
		if err != nil {
			refusal = fmt.Errorf("platform %s: %w", p.Platform, err)
		}
		if err := r.excuse(Unread{Subject: p.Platform, What: "manifest", Digest: entry.Digest}, err); err != nil {
			return nil, refusal
		}
		if r.Version == "" {
			r.Version = p.Version
		}
		r.Platforms = append(r.Platforms, p)
		subjects = append(subjects, named{p.Platform, plain(entry)})
	}
	if refusal != nil && !slices.ContainsFunc(r.Platforms, func(p InspectedPlatform) bool { return p.read }) {
		if errors.Is(refusal, artifact.ErrInvalid) {
			return nil, fmt.Errorf("%s: %w: %w", r.Repository, ErrNotPlugin, refusal)
		}
		return nil, refusal
	}
	return subjects, nil
}

// boundedSource is a source with bounds on what is read in all.
type boundedSource struct {
	*ociregistry.Bounded
	name string
}

func bounded(from Source) Source { return boundedSource{ociregistry.NewBounded(from), from.Name()} }

// Name implements Content.
func (b boundedSource) Name() string { return b.name }

// inspectParallel is how many layers are fetched at a time.
const inspectParallel = 4

// listFiles fetches each layer once, and lists its files.
func (r *Report) listFiles(ctx context.Context, from Source, report func(Event)) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(inspectParallel)
	first, left := map[digest.Digest]int{}, newAllowance()
	refusals := make([]error, len(r.Platforms))
	for i, p := range r.Platforms {
		if _, known := first[p.Layer]; known || p.Layer == "" {
			continue // images on several bases have one layer
		}
		first[p.Layer] = i
		g.Go(func() error {
			reading := Event{Kind: EventReading, Subject: p.Platform, Size: p.Size}
			report(reading)
			r.Platforms[i].Files, refusals[i] = listLayer(gctx, from, p.layer, left, reading.reporting(report))
			if !excusable(refusals[i]) {
				return refusals[i]
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, p := range r.Platforms {
		if err := r.excuse(Unread{Subject: p.Platform, What: "files", Digest: p.Layer}, refusals[i]); err != nil {
			return err
		}
		if one, ok := first[p.Layer]; ok {
			r.Platforms[i].Files = r.Platforms[one].Files
		}
	}
	return nil
}

// named is a manifest and what to call it.
type named struct {
	name string
	desc ocispec.Descriptor
}

func inspectPlatform(ctx context.Context, from Source, entry ocispec.Descriptor) (InspectedPlatform, error) {
	p := InspectedPlatform{Platform: "unknown", Digest: entry.Digest}
	if entry.Platform != nil {
		if parsed, err := artifact.PlatformFromOCI(*entry.Platform); err == nil {
			p.Platform = parsed.String()
		}
	}
	content, err := from.FetchAll(ctx, plain(entry), artifact.ManifestLimit)
	if err != nil {
		return p, err
	}
	m, err := artifact.DecodeManifest(entry.MediaType, content)
	if err != nil {
		return p, err
	}
	p.read = true
	if layers := artifact.PluginLayers(m); len(layers) > 0 {
		p.layer, p.Version = layers[0].Descriptor, layers[0].Version
		p.Layer, p.Size = p.layer.Digest, p.layer.Size
	}
	return p, nil
}

// tagsOf returns which of the tags that may stand for the version do.
func tagsOf(ctx context.Context, from Source, reference, version string, want digest.Digest) ([]string, error) {
	var candidates []string
	if v, err := ParseVersion(version); err == nil {
		candidates = append([]string{v.String()}, Aliases(v)...)
	}
	if !strings.Contains(reference, ":") && !slices.Contains(candidates, reference) {
		candidates = append(candidates, reference)
	}
	found := []string{}
	for _, tag := range candidates {
		desc, err := from.Resolve(ctx, tag)
		switch {
		case errors.Is(err, ociregistry.ErrNotFound):
		case err != nil:
			return nil, err
		case desc.Digest == want:
			found = append(found, tag)
		}
	}
	return found, nil
}
