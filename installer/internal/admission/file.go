package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/reason"
)

// ErrNotAttested is a refusal because no evidence at all is about a file.
var ErrNotAttested = reason.New(nil, "not-attested", "no attestation is about this file")

// JudgeFile says whether a file that is in no registry has what is asked for, and
// gives the evidence that decided. found is evidence about the file's digest.
//
// Such a file carries no signature, so a provenance that meets every condition on
// provenance counts as one: as many are needed as there must be signatures, by
// different signers. A bill of materials is not asked for, since it is a file
// itself; every other attestation is. A version is denied by the tag that the
// provenance names.
//
// Refusals match [ErrRefused], and [ErrNotAttested] if nothing was found.
func (r Requirements) JudgeFile(ctx context.Context, file digest.Digest, found []trust.Evidence, now time.Time) ([]trust.Verified, error) {
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("%w: the policy is unusable: %w", ErrRefused, err)
	}
	if slices.Contains(r.DeniedDigests, file) {
		return nil, fmt.Errorf("%w: digest %s is denied", ErrRefused, file)
	}
	var all findings
	for _, ev := range found {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		all.add(ctx, r.Signers, file, ev)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r = r.forFile()
	accepted, err := r.judge(all)
	if err == nil && r.MinimumAge > 0 {
		accepted, err = r.aged(all, now)
	}
	if err != nil {
		return nil, err
	}
	return accepted, nil
}

// forFile are the requirements as they are for a file.
func (r Requirements) forFile() Requirements {
	var others []Attestation
	r.provenances = nil
	for _, a := range r.Attestations {
		switch {
		case a.isProvenance():
			r.provenances = append(r.provenances, a)
		case !a.isBillOfMaterials():
			others = append(others, a)
		}
	}
	if len(r.provenances) == 0 {
		r.provenances = []Attestation{{Types: []string{artifact.PredicateProvenance}}}
	}
	r.Attestations, r.AttestationsSuffice = others, false
	return r
}

func (a Attestation) isProvenance() bool {
	return slices.Equal(a.Types, []string{artifact.PredicateProvenance})
}

func (a Attestation) isBillOfMaterials() bool {
	return !slices.ContainsFunc(a.Types, func(t string) bool { return t != artifact.PredicateSPDX && t != artifact.PredicateCycloneDX })
}

// counts says whether evidence is one of the wanted signatures, with the reason
// why it is not, where there is more to say than its kind.
func (r Requirements) counts(v trust.Verified) (bool, error) {
	if r.provenances == nil {
		return v.Kind() == trust.KindSignature, nil
	}
	if v.PredicateType() != artifact.PredicateProvenance {
		return false, fmt.Errorf("its predicate is %s, not provenance", v.PredicateType())
	}
	for _, wanted := range r.provenances {
		if err := wanted.conditions(v); err != nil {
			return false, err
		}
	}
	if err := r.deniedTag(v); err != nil {
		return false, err
	}
	return true, nil
}

// deniedTag refuses what was built from the tag of a denied version.
func (r Requirements) deniedTag(v trust.Verified) error {
	claimed, err := decodeProvenance(v)
	if err != nil {
		return err
	}
	_, ref := claimed.source()
	for _, ref := range []string{ref, v.Signer().SourceRef} {
		tag, ok := strings.CutPrefix(ref, "refs/tags/")
		if !ok {
			continue
		}
		if parsed, err := version.ParseTag(tag); err == nil {
			if err := r.deniedVersion(parsed); err != nil {
				return err
			}
		}
	}
	return nil
}
