package installer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/admission"
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
			return Reference{}, nil, fmt.Errorf("%w: %w", ErrNotPlugin, err)
		}
		platform, err := configPlatform(ctx, src, chain.Manifest())
		return pinned, []string{platform.String()}, err
	}
	index, err := artifact.DecodeIndex(found.desc.MediaType, top.Content)
	if err != nil {
		return Reference{}, nil, fmt.Errorf("%w: index %s: %w", ErrNotPlugin, found.desc.Digest, err)
	}
	for _, entry := range index.Manifests {
		if platform, ok := entryPlatform(entry); ok {
			platforms = append(platforms, platform.String())
		}
	}
	if len(platforms) == 0 {
		return Reference{}, nil, fmt.Errorf("%w: index %s names no platform", ErrNoPlatform, found.desc.Digest)
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

// Provenance gives the predicate of the SLSA provenance among the evidence that
// decided, as signed, and who signed it. It reports false where the policy did
// not ask for one, see [Policy.WithProvenance].
func (v Verified) Provenance() (predicate json.RawMessage, by Evidence, ok bool) {
	for n, verified := range v.admission.Verified() {
		if verified.PredicateType() == artifact.PredicateProvenance {
			return verified.Predicate(), v.Verification.Evidence[n], true
		}
	}
	return nil, Evidence{}, false
}
