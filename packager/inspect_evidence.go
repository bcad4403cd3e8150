package packager

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/jsonbound"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/packager/internal/signer"
)

// excuse notes what could not be read, if whoever may push decides that: what is
// missing, malformed or too much. It returns every other error, such as one of the
// registry, and bytes that differ from their digest.
func (r *Report) excuse(u Unread, err error) error {
	if !excusable(err) {
		return err
	}
	if err == nil {
		return nil
	}
	u.Reason = err.Error()
	// Of what is too much in all, so is all the rest.
	switch {
	case errors.Is(err, ociregistry.ErrExhausted):
		u = Unread{What: "more", Reason: u.Reason}
	case errors.Is(err, errContents):
		u = Unread{What: "files", Reason: errContents.Error()}
	}
	if u.Subject != "" || !slices.Contains(r.Unread, u) {
		r.Unread = append(r.Unread, u)
	}
	return nil
}

// errMalformed is content that is not what it says it is.
var errMalformed = errors.New("malformed")

// excusable reports that an error, or none, says nothing about the registry.
func excusable(err error) bool {
	if err == nil {
		return true
	}
	for _, kind := range []error{ociregistry.ErrNotFound, ociregistry.ErrTooLarge, artifact.ErrInvalid, errMalformed} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// inspectEvidence reads the evidence about one manifest.
func (r *Report) inspectEvidence(ctx context.Context, from Source, subject named) error {
	for _, tag := range []string{artifact.SignatureTag(subject.desc.Digest), artifact.AttestationTag(subject.desc.Digest)} {
		desc, err := from.Resolve(ctx, tag)
		if errors.Is(err, ociregistry.ErrNotFound) {
			continue
		}
		if err == nil {
			err = r.inspectHolder(ctx, from, subject.name, "tag", desc)
		}
		if err := r.excuse(Unread{Subject: subject.name, What: tag, Digest: desc.Digest}, err); err != nil {
			return err
		}
	}
	referrers, err := from.Referrers(ctx, subject.desc)
	if err := r.excuse(Unread{Subject: subject.name, What: "referrers"}, err); err != nil {
		return err
	}
	for _, desc := range referrers {
		err := r.inspectHolder(ctx, from, subject.name, "bundle", desc)
		if err := r.excuse(Unread{Subject: subject.name, What: "referrer", Digest: desc.Digest}, err); err != nil {
			return err
		}
	}
	return nil
}

// fetchEvidence fetches what a stranger described: a wrong size is no alteration by
// the registry.
func fetchEvidence(ctx context.Context, from Source, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	content, err := from.FetchAll(ctx, plain(desc), limit)
	if errors.Is(err, ociregistry.ErrDigestMismatch) {
		err = fmt.Errorf("%w: %w", errMalformed, err)
	}
	return content, err
}

// inspectHolder reads a manifest whose layers are evidence.
func (r *Report) inspectHolder(ctx context.Context, from Source, subject, form string, desc ocispec.Descriptor) error {
	content, err := fetchEvidence(ctx, from, desc, artifact.ManifestLimit)
	if err != nil {
		return err
	}
	m, err := artifact.DecodeManifest(desc.MediaType, content)
	if err != nil {
		return err
	}
	for _, l := range m.Layers {
		err := r.inspectLayer(ctx, from, subject, form, l)
		if err := r.excuse(Unread{Subject: subject, What: "evidence", Digest: l.Digest}, err); err != nil {
			return err
		}
	}
	return nil
}

// Bounds of what is read of one piece of evidence and one document, in bytes, and of
// JSON values: of a bundle or an envelope, whose payload is one, and of a
// provenance. The installer reads no larger evidence.
const (
	evidenceLimit    = 8 << 20
	documentLimit    = 32 << 20
	evidenceValues   = 10_000
	provenanceValues = 100_000
)

func (r *Report) inspectLayer(ctx context.Context, from Source, subject, form string, l ocispec.Descriptor) error {
	switch l.MediaType {
	case artifact.MediaTypeSimpleSigning:
		r.Signatures = append(r.Signatures, InspectedSignature{subject, form, claimantOf(l.Annotations)})
		return nil
	case artifact.MediaTypeDSSE, artifact.MediaTypeBundle:
	case artifact.MediaTypeSPDX, artifact.MediaTypeCycloneDX:
		content, err := fetchEvidence(ctx, from, l, documentLimit)
		if err != nil {
			return err
		}
		d := InspectedDocument{Subject: subject, MediaType: l.MediaType, Digest: l.Digest, Size: l.Size}
		if d.Components, d.Licensed, err = countComponents(content); err != nil {
			return fmt.Errorf("%w: %w", errMalformed, err)
		}
		r.Documents = append(r.Documents, d)
		return nil
	default:
		return nil
	}
	content, err := fetchEvidence(ctx, from, l, evidenceLimit)
	if err != nil {
		return err
	}
	if err := jsonbound.Check(content, evidenceValues); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	claimant, env := claimantOf(l.Annotations), envelope{}
	if l.MediaType == artifact.MediaTypeBundle {
		claimant, env, err = readBundle(content)
	} else {
		err = json.Unmarshal(content, &env)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	a, err := readStatement(env.Payload)
	if err != nil {
		return fmt.Errorf("%w: no statement: %w", errMalformed, err)
	}
	a.Subject, a.Form, a.Claimant = subject, form, claimant
	if a.PredicateType == artifact.PredicateSignature {
		r.Signatures = append(r.Signatures, InspectedSignature{subject, form, claimant})
		return nil
	}
	r.Attestations = append(r.Attestations, a)
	return nil
}

// claimantOf reads the annotations of cosign's legacy layers.
func claimantOf(annotations map[string]string) Claimant {
	c := Claimant{
		Logged:      annotations[artifact.AnnotationLogEntry] != "",
		Timestamped: annotations[artifact.AnnotationTimestamp] != "",
	}
	if block, _ := pem.Decode([]byte(annotations[artifact.AnnotationCertificate])); block != nil {
		c.certifiedBy(block.Bytes)
	}
	return c
}

// readBundle reads a sigstore bundle, version 0.3.
func readBundle(content []byte) (Claimant, envelope, error) {
	var b struct {
		Material struct {
			PublicKey   struct{ Hint string }
			Certificate struct{ RawBytes []byte }
			TlogEntries []json.RawMessage
			Timestamps  struct {
				RFC3161 []json.RawMessage `json:"rfc3161Timestamps"`
			} `json:"timestampVerificationData"`
		} `json:"verificationMaterial"`
		Envelope envelope `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(content, &b); err != nil {
		return Claimant{}, envelope{}, err
	}
	c := Claimant{
		Key: keyID(b.Material.PublicKey.Hint), Logged: len(b.Material.TlogEntries) > 0, Timestamped: len(b.Material.Timestamps.RFC3161) > 0,
	}
	if raw := b.Material.Certificate.RawBytes; len(raw) > 0 {
		c.certifiedBy(raw)
	}
	return c, b.Envelope, nil
}

// keyID turns the hint of cosign's bundles, base64 of the SHA-256 of the public
// key in DER form, into the hexadecimal form that the installer's
// verification show. Other hints stay as they are.
func keyID(hint string) string {
	if raw, err := base64.StdEncoding.DecodeString(hint); err == nil && len(raw) == sha256.Size {
		return hex.EncodeToString(raw)
	}
	return hint
}

// certifiedBy notes what a certificate of Fulcio says.
func (c *Claimant) certifiedBy(der []byte) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return
	}
	if c.Certificate, err = signer.ReadCertificate(cert); err == nil {
		c.Identity, c.Issuer = c.Certificate.Identity, c.Certificate.Issuer
	}
}

// predicate is what is read of a provenance.
type predicate struct {
	BuildDefinition struct {
		ResolvedDependencies []struct {
			URI    string            `json:"uri"`
			Digest map[string]string `json:"digest"`
		} `json:"resolvedDependencies"`
		InternalParameters struct {
			Go struct {
				LDFlags string `json:"ldflags"`
			} `json:"go"`
			Environment struct {
				System     string `json:"system"`
				Repository string `json:"repository"`
				Workflow   string `json:"workflow"`
			} `json:"environment"`
		} `json:"internalParameters"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// readStatement reads an in-toto statement, and of provenance what matters.
func readStatement(payload []byte) (InspectedAttestation, error) {
	var st struct {
		PredicateType string          `json:"predicateType"`
		Predicate     json.RawMessage `json:"predicate"`
	}
	if err := json.Unmarshal(payload, &st); err != nil {
		return InspectedAttestation{}, err
	}
	a := InspectedAttestation{PredicateType: st.PredicateType}
	var p predicate
	if st.PredicateType != PredicateProvenance || jsonbound.Check(st.Predicate, provenanceValues) != nil || json.Unmarshal(st.Predicate, &p) != nil {
		return a, nil //nolint:nilerr // it has no claims that we can read
	}
	internal := p.BuildDefinition.InternalParameters
	a.Claims = &ProvenanceClaims{Builder: p.RunDetails.Builder.ID, LDFlags: internal.Go.LDFlags}
	if said := internal.Environment; said.System != "" {
		a.Claims.Workflow = strings.TrimSpace(said.System + " " + said.Repository + " " + said.Workflow)
	}
	if d := p.BuildDefinition.ResolvedDependencies; len(d) > 0 {
		a.Claims.Source, a.Claims.Revision = d[0].URI, d[0].Digest["gitCommit"]
	}
	return a, nil
}

// countComponents counts the entries of an SPDX or CycloneDX document.
func countComponents(content []byte) (all, licensed int, err error) {
	var doc struct {
		Packages   tally[spdxPackage] `json:"packages"`
		Components tally[component]   `json:"components"`
		Metadata   struct {
			Component component `json:"component"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(content, &doc); err != nil {
		return 0, 0, err
	}
	all, licensed = doc.Packages.all+doc.Components.all, doc.Packages.licensed+doc.Components.licensed
	// The one executable that a CycloneDX document is about is listed apart; a
	// release as a whole is no component, and has no checksum.
	if about := doc.Metadata.Component; about.Hashes {
		all++
		if about.hasLicense() {
			licensed++
		}
	}
	return all, licensed, nil
}

// tally counts the elements of a list, of which it keeps none.
type tally[T interface{ hasLicense() bool }] struct{ all, licensed int }

// UnmarshalJSON implements json.Unmarshaler.
func (t *tally[T]) UnmarshalJSON(text []byte) error {
	*t = tally[T]{}
	list := json.NewDecoder(bytes.NewReader(text))
	if start, err := list.Token(); err != nil || start != json.Delim('[') {
		return err // null
	}
	for list.More() {
		var one T
		if err := list.Decode(&one); err != nil {
			return err
		}
		t.all++
		if one.hasLicense() {
			t.licensed++
		}
	}
	return nil
}

type spdxPackage struct {
	LicenseDeclared string `json:"licenseDeclared"`
}

func (p spdxPackage) hasLicense() bool {
	return p.LicenseDeclared != "" && p.LicenseDeclared != noLicense
}

// component holds what is counted of one in a CycloneDX document.
type component struct {
	Licenses filled `json:"licenses"`
	Hashes   filled `json:"hashes"`
}

func (c component) hasLicense() bool { return bool(c.Licenses) }

// filled says whether a list has an element.
type filled bool

// UnmarshalJSON implements json.Unmarshaler.
func (f *filled) UnmarshalJSON(text []byte) error {
	inner, ok := bytes.CutPrefix(text, []byte("["))
	*f = filled(ok && len(bytes.TrimSpace(inner)) > 1)
	return nil
}

// noLicense is how SPDX writes that a licence is not known.
const noLicense = "NOASSERTION"
