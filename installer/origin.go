package installer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/evidence"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// Platforms gives the platforms that a reference has something for, as
// "os/arch[/variant][:os.version]", sorted, and the reference pinned to the digest that it
// resolved to. Nothing is verified; to verify is one [Installer.Verify] with
// [WithPlatform] for each.
func (i *Installer) Platforms(ctx context.Context, ref Reference) (pinned Reference, platforms []string, err error) {
	pinned, platforms, err = i.platforms(ctx, ref)
	return pinned, platforms, failed("resolving", ref.String(), err)
}

func (i *Installer) platforms(ctx context.Context, ref Reference) (Reference, []string, error) {
	src, err := i.source(ctx, ref)
	if err != nil {
		return Reference{}, nil, err
	}
	found, err := pick(ctx, src, ref)
	if err != nil {
		return Reference{}, nil, err
	}
	pinned := ref
	pinned.digest = found.desc.Digest
	top, err := fetchDocument(ctx, src, found.desc)
	if err != nil {
		return Reference{}, nil, err
	}
	var platforms []string
	if !artifact.IsIndex(found.desc.MediaType) {
		chain, err := admission.NewChain(nil, top)
		if err != nil {
			return Reference{}, nil, fmt.Errorf("%w: %w", errNotPlugin, err)
		}
		platform, err := configPlatform(ctx, src, chain.Manifest())
		return pinned, []string{platform.String()}, err
	}
	index, err := artifact.DecodeIndex(found.desc.MediaType, top.Content)
	if err != nil {
		return Reference{}, nil, fmt.Errorf("%w: index %s: %w", errNotPlugin, found.desc.Digest, err)
	}
	for _, entry := range index.Manifests {
		if platform, ok := entryPlatform(entry); ok {
			platforms = append(platforms, platform.String())
		}
	}
	if len(platforms) == 0 {
		return Reference{}, nil, fmt.Errorf("%w: index %s names no platform", errNoPlatform, found.desc.Digest)
	}
	slices.Sort(platforms)
	return pinned, slices.Compact(platforms), nil
}

// WithProvenance gives a policy that asks for a SLSA provenance beside what it
// asks for already, by the same signers. Rules that let things in unverified
// stay as they are.
func (p Policy) WithProvenance() Policy {
	more := Policy{unsafe: p.unsafe, rules: slices.Clone(p.rules)}
	for n := range more.rules {
		rule := &more.rules[n]
		if rule.unsafe {
			continue
		}
		rule.requirements.Attestations = append(slices.Clone(rule.requirements.Attestations), admission.Attestation{
			Types: []string{artifact.PredicateProvenance},
		})
	}
	return more
}

// Annotation gives an annotation of the manifest, else of its entry in the
// index, else of the index; "" if there is none. What was verified covers all
// three.
func (v Verified) Annotation(key string) string { return v.chain.Annotation(key) }

// Provenance is a SLSA provenance that a policy accepts.
type Provenance struct {
	// Predicate is what was signed, JSON.
	Predicate json.RawMessage
	// By says who signed it, and when if there is proof.
	By Evidence
}

// Provenances gives every SLSA provenance about v that its policy accepts, each
// once, the newest last as far as that can be told: publishers correct what they
// said by saying it anew. There is none where nothing was verified. One that could
// not be fetched is [ErrEvidence].
func (i *Installer) Provenances(ctx context.Context, v Verified) ([]Provenance, error) {
	found, err := i.provenances(ctx, v)
	return found, failed("verifying", v.Reference.String(), err)
}

func (i *Installer) provenances(ctx context.Context, v Verified) ([]Provenance, error) {
	kept, err := i.accepts(v)
	if err != nil {
		return nil, err
	}
	rule, err := i.policy.ruleFor(kept.Reference.Name())
	if err != nil || rule.unsafe {
		return nil, err
	}
	evaluation, err := rule.requirements.Evaluate(kept.Version, kept.chain)
	if err != nil {
		return nil, err
	}
	sources, err := i.evidenceSources(ctx, kept.Resolution, rule)
	if err != nil {
		return nil, err
	}
	var failures []error
	var search evidence.Search
	for _, subject := range kept.chain.Subjects() {
		for _, src := range sources {
			failures = append(failures, search.Discover(ctx, src, subject, func(found evidence.Found) bool {
				evaluation.Add(ctx, subject.Digest, found.Evidence)
				return ctx.Err() == nil
			}))
		}
	}
	if err := cmp.Or(ctx.Err(), errors.Join(failures...)); err != nil {
		return nil, err
	}
	var all []Provenance
	for _, verified := range evaluation.Attestations(artifact.PredicateProvenance) {
		p := Provenance{verified.Predicate(), describeEvidence(verified)}
		same := func(q Provenance) bool {
			return bytes.Equal(p.Predicate, q.Predicate) && p.By.Signer() == q.By.Signer()
		}
		if !slices.ContainsFunc(all, same) {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b Provenance) int { return timeOf(a).Compare(timeOf(b)) })
	return all, nil
}

// timeOf is when a provenance was signed, the zero time without proof.
func timeOf(p Provenance) time.Time {
	if p.By.Time == nil {
		return time.Time{}
	}
	return *p.By.Time
}
