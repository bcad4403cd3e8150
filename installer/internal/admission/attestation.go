package admission

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// Attestation is one attestation that must be there.
type Attestation struct {
	// Types are the accepted predicate types.
	Types []string
	// Builder is the identity of the builder, exactly as in the SLSA provenance.
	Builder string
	// SourceRepository is the URI of the repository it was built from.
	SourceRepository string
	// SourceRef is the git ref it was built from, matched in whole.
	SourceRef *Pattern
}

// Pattern is a text in which * stands for any characters. It matches whole texts.
type Pattern struct {
	text string
	re   *regexp.Regexp
}

// Wildcard makes a pattern of a text.
func Wildcard(text string) *Pattern {
	return &Pattern{text, regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, ".*") + "$")}
}

// String is the text, "" for no pattern.
func (p *Pattern) String() string {
	if p == nil {
		return ""
	}
	return p.text
}

// Conditional says whether the content of the predicate matters.
func (a Attestation) Conditional() bool {
	return a.Builder != "" || a.SourceRepository != "" || a.SourceRef != nil
}

// Attestations gives every attestation of a type that verified for one of the
// signers and satisfies all that the requirements say about that type, in the
// order of the evidence.
func (e *Evaluation) Attestations(predicateType string) []trust.Verified {
	var found []trust.Verified
	for _, verified := range e.findings.verified {
		if verified.Kind() != trust.KindAttestation || verified.PredicateType() != predicateType {
			continue
		}
		refused := slices.ContainsFunc(e.requirements.Attestations, func(a Attestation) bool {
			return a.Conditional() && slices.Contains(a.Types, predicateType) && a.conditions(verified.Verified) != nil
		})
		if !refused {
			found = append(found, verified.Verified)
		}
	}
	return found
}

// find gives the first verified attestation that satisfies this.
func (a Attestation) find(v findings) (trust.Verified, error) {
	var looked, others []Looked
	var causes []error
	for _, verified := range v.verified {
		if verified.Kind() != trust.KindAttestation {
			continue
		}
		if !slices.Contains(a.Types, verified.PredicateType()) {
			others = note(others, verified.origin, "of type "+verified.PredicateType())
			continue
		}
		if !a.Conditional() {
			return verified.Verified, nil
		}
		err := a.conditions(verified.Verified)
		if err == nil {
			return verified.Verified, nil
		}
		causes = append(causes, err)
		looked = note(looked, verified.origin, err.Error())
	}
	if len(causes) == 0 {
		causes = v.refused
		looked = append(others, lookedAt(v.refused)...)
	}
	return trust.Verified{}, refuse(looked, append(causes, ErrNoAttestation), "%v of type %s that satisfies the policy", ErrNoAttestation, strings.Join(a.Types, " or "))
}

// provenance is the part of a SLSA provenance v1 predicate that conditions are
// about (https://slsa.dev/spec/v1.0/provenance).
type provenance struct {
	BuildDefinition struct {
		ExternalParameters struct {
			Workflow struct {
				Repository string `json:"repository"`
				Ref        string `json:"ref"`
			} `json:"workflow"`
			Source struct {
				Repository string `json:"repository"`
				Ref        string `json:"ref"`
			} `json:"source"`
		} `json:"externalParameters"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

func (p provenance) source() (repository, ref string) {
	workflow, source := p.BuildDefinition.ExternalParameters.Workflow, p.BuildDefinition.ExternalParameters.Source
	if workflow.Repository != "" {
		return workflow.Repository, workflow.Ref
	}
	return source.Repository, source.Ref
}

func decodeProvenance(v trust.Verified) (p provenance, err error) {
	if err := json.Unmarshal(v.Predicate(), &p); err != nil {
		return p, fmt.Errorf("provenance cannot be read: %w", err)
	}
	return p, nil
}

// conditions compares the predicate, and for a keyless signer the certificate
// too: it is what the authority vouches for, the predicate is what the signer
// wrote.
func (a Attestation) conditions(v trust.Verified) error {
	if v.PredicateType() != artifact.PredicateProvenance {
		return fmt.Errorf("conditions are for %s only, not %s", artifact.PredicateProvenance, v.PredicateType())
	}
	p, err := decodeProvenance(v)
	if err != nil {
		return err
	}
	var certificate *trust.Signer
	if signer := v.Signer(); signer.Issuer != "" {
		certificate = &signer
	}
	if err := a.checkBuilder(p, certificate); err != nil {
		return err
	}
	return a.checkSource(p, certificate)
}

func (a Attestation) checkBuilder(p provenance, certificate *trust.Signer) error {
	if a.Builder == "" {
		return nil
	}
	builder := p.RunDetails.Builder.ID
	if builder != a.Builder {
		return fmt.Errorf("built by %q, want %q", builder, a.Builder)
	}
	if certificate != nil && !isHostedRunner(builder) && certificate.BuildSigner != builder {
		return fmt.Errorf("provenance names builder %q, the certificate %q", builder, certificate.BuildSigner)
	}
	return nil
}

func (a Attestation) checkSource(p provenance, certificate *trust.Signer) error {
	type claim struct{ by, repository, ref string }
	repository, ref := p.source()
	claims := []claim{{"provenance", repository, ref}}
	if certificate != nil {
		claims = append(claims, claim{"certificate", certificate.SourceRepository, certificate.SourceRef})
	}
	for _, c := range claims {
		if a.SourceRepository != "" && c.repository != a.SourceRepository {
			return fmt.Errorf("the %s says built from %q, want %q", c.by, c.repository, a.SourceRepository)
		}
		if a.SourceRef != nil && !a.SourceRef.re.MatchString(c.ref) {
			return fmt.Errorf("the %s says built from ref %q, want %s", c.by, c.ref, a.SourceRef)
		}
	}
	return nil
}

// isHostedRunner knows the builder that GitHub's own provenance names, which is
// the kind of machine and not the workflow in the certificate.
func isHostedRunner(builder string) bool {
	return strings.HasPrefix(builder, "https://github.com/actions/runner/")
}
