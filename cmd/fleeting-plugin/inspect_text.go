package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// printReport writes what a person wants to see at a glance. Whatever is the
// same for several manifests is one line; JSON has each by itself.
func printReport(p *cli.Page, r *packager.Report) {
	p.Printf("%s@%s\n", r.Repository, r.Digest)
	line := func(name, value string) { p.Field(15, name, value) }
	line("version", r.Version)
	line("tags", strings.Join(r.Tags, ", "))
	line("minimum runner", r.MinimumRunner)
	line("library", r.Library)
	for _, name := range slices.Sorted(maps.Keys(r.Annotations)) {
		short, ok := strings.CutPrefix(name, "org.opencontainers.image.")
		if ok && short != "version" {
			line(short, r.Annotations[name])
		}
	}
	p.Print("\n")
	rows := make([][]string, len(r.Platforms))
	all := make([]filesOf, len(r.Platforms))
	for i, one := range r.Platforms {
		rows[i] = []string{one.Platform, one.Version, cli.Size(one.Size), one.Digest.String()}
		all[i] = filesOf{one.Platform, one.Files}
	}
	p.Table([]string{"platform", "version", "size", "manifest"}, rows)
	printFiles(p, all)
	printEvidence(p, r)
	printDocuments(p, r)
	printUnread(p, r.Unread)
}

// unreadShown is how many things that could not be read are listed for people.
const unreadShown = 10

func printUnread(p *cli.Page, all []packager.Unread) {
	if len(all) == 0 {
		return
	}
	p.Print("\ncould not be read\n")
	for _, u := range all[:min(len(all), unreadShown)] {
		p.Field(14, "  "+cmp.Or(u.Subject, "all"), strings.TrimSpace(u.What+" "+u.Digest.String())+": "+u.Reason)
	}
	if rest := len(all) - unreadShown; rest > 0 {
		p.Printf("  and %d more; --output json lists them\n", rest)
	}
}

// evidence is one kind of signed thing by one signer.
type evidence struct {
	signer, what    string
	detail          []string
	subjects, forms set
	// proofs counts those with an entry in a log and with a timestamp.
	logged, timestamped, all int
}

// set is a set of words.
type set map[string]bool

func (s set) add(word string) { s[word] = true }

// unnamedKey is the signer of what a tag holds: its signatures do not say
// which key made them.
const unnamedKey = "a key that is not named"

// unnamedMark follows the form of evidence that is listed under the only key
// that anything names, without naming it itself.
const unnamedMark = "*"

// onlyKey is the one key that signatures and attestations name, or "".
func onlyKey(r *packager.Report) string {
	keys := set{}
	for _, s := range r.Signatures {
		keys.add(s.Key)
	}
	for _, a := range r.Attestations {
		keys.add(a.Key)
	}
	delete(keys, "")
	if len(keys) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(keys))[0]
}

// evidenceOf groups signatures and attestations by signer and kind.
func evidenceOf(r *packager.Report) []*evidence {
	var all []*evidence
	only := onlyKey(r)
	add := func(subject, form, what string, detail []string, c packager.Claimant) {
		signer := c.String()
		if c.Key == "" && c.Identity == "" {
			signer = unnamedKey
			if only != "" {
				signer, form = packager.Claimant{Key: only}.String(), form+unnamedMark
			}
		}
		i := slices.IndexFunc(all, func(e *evidence) bool {
			return e.signer == signer && e.what == what && slices.Equal(e.detail, detail)
		})
		if i < 0 {
			all = append(all, &evidence{signer: signer, what: what, detail: detail, subjects: set{}, forms: set{}})
			i = len(all) - 1
		}
		e := all[i]
		e.subjects.add(subject)
		e.forms.add(form)
		e.all++
		if c.Logged {
			e.logged++
		}
		if c.Timestamped {
			e.timestamped++
		}
	}
	for _, s := range r.Signatures {
		add(s.Subject, s.Form, "signature", nil, s.Claimant)
	}
	for _, a := range r.Attestations {
		var lines []string
		if a.Claims != nil {
			lines = provenanceLines(*a.Claims, a.Certificate)
		}
		add(a.Subject, a.Form, kindOfPredicate(a.PredicateType), lines, a.Claimant)
	}
	return all
}

// provenanceLines tells what a certificate says of a build from what the provenance
// claims. Only a certificate authority can certify a builder; whoever signs writes
// the claims.
func provenanceLines(claims packager.ProvenanceClaims, certificate *packager.Certified) []string {
	var lines []string
	if certificate != nil && certificate.BuildSigner != "" {
		lines = append(lines, fmt.Sprintf("certified: built by %s from %s at %s, commit %s",
			certificate.BuildSigner, certificate.Repository, certificate.Ref, certificate.Commit))
	}
	claimed := "claims to be built by hand"
	if claims.Builder != packager.BuildTypeLocal {
		claimed = "claims to be built by " + claims.Builder
	}
	if claims.Source != "" {
		claimed += strings.TrimRight(" from "+claims.Source+" "+claims.Revision, " ")
	}
	switch {
	case certificate == nil || certificate.BuildSigner == "":
		lines = append(lines, claimed+"; nothing certifies that")
	case claims.Agree(*certificate):
		lines = append(lines, "the provenance claims the same")
	default:
		lines = append(lines, claimed+"; the certificate says otherwise")
	}
	if claims.Workflow != "" {
		lines = append(lines, "claims that the environment was "+claims.Workflow)
	}
	flags := "records no -ldflags, so only executables that record theirs can be rebuilt"
	if claims.LDFlags != "" {
		flags = fmt.Sprintf("with -ldflags '%s'", claims.LDFlags)
	}
	return append(lines, flags)
}

// kindOfPredicate shortens the types that everybody has.
func kindOfPredicate(predicateType string) string {
	switch predicateType {
	case packager.PredicateSPDX:
		return "SPDX"
	case packager.PredicateCycloneDX:
		return "CycloneDX"
	case packager.PredicateProvenance:
		return "provenance"
	}
	return predicateType
}

func printEvidence(p *cli.Page, r *packager.Report) {
	all := evidenceOf(r)
	if len(all) == 0 && !r.Complete() {
		p.Print("\nno signature and no attestation could be read\n")
		return
	}
	if len(all) == 0 {
		p.Print("\nneither signed nor attested\n")
		return
	}
	var signers []string
	for _, e := range all {
		if !slices.Contains(signers, e.signer) {
			signers = append(signers, e.signer)
		}
	}
	for _, signer := range signers {
		p.Printf("\nclaims to be signed by %s\n", signer)
		for _, e := range all {
			if e.signer == signer {
				p.Field(14, "  "+e.what, strings.Join([]string{
					subjects(r, e.subjects), strings.Join(slices.Sorted(maps.Keys(e.forms)), " and "), e.proofs(),
				}, "; "))
				for _, line := range e.detail {
					p.Printf("    %s\n", line)
				}
			}
		}
	}
	if onlyKey(r) != "" && slices.ContainsFunc(all, func(e *evidence) bool { return e.forms["tag"+unnamedMark] }) {
		p.Print("  * does not name its key; fleeting-plugin verify finds out\n")
	}
}

// proofs says when it was signed, as far as there is evidence.
func (e *evidence) proofs() string {
	var proofs []string
	for _, p := range []struct {
		n    int
		name string
	}{{e.logged, "logged"}, {e.timestamped, "timestamped"}} {
		switch p.n {
		case 0:
		case e.all:
			proofs = append(proofs, p.name)
		default:
			proofs = append(proofs, fmt.Sprintf("%d of %d %s", p.n, e.all, p.name))
		}
	}
	if len(proofs) == 0 {
		return "no proof of time"
	}
	return strings.Join(proofs, ", ")
}

// subjects names manifests, in the order of the index.
func subjects(r *packager.Report, of set) string {
	var names, missing []string
	for _, p := range r.Platforms {
		if of[p.Platform] {
			names = append(names, p.Platform)
		} else {
			missing = append(missing, p.Platform)
		}
	}
	if len(missing) == 0 && len(names) > 1 {
		names = []string{fmt.Sprintf("all %d platforms", len(names))}
	}
	if of["index"] {
		names = append([]string{"index"}, names...)
	}
	return strings.Join(names, ", ")
}

// printDocuments lists the bills of materials, one line for those that list
// equally much.
func printDocuments(p *cli.Page, r *packager.Report) {
	type group struct {
		what, contents string
		subjects       set
	}
	var groups []*group
	for _, d := range r.Documents {
		what := d.MediaType
		switch d.MediaType {
		case artifact.MediaTypeSPDX:
			what = "SPDX"
		case artifact.MediaTypeCycloneDX:
			what = "CycloneDX"
		}
		contents := fmt.Sprintf("%d components, %d with a licence", d.Components, d.Licensed)
		i := slices.IndexFunc(groups, func(g *group) bool { return g.what == what && g.contents == contents })
		if i < 0 {
			groups = append(groups, &group{what, contents, set{}})
			i = len(groups) - 1
		}
		groups[i].subjects.add(d.Subject)
	}
	if len(groups) == 0 && !r.Complete() {
		p.Print("\nno bill of materials could be read\n")
		return
	}
	if len(groups) == 0 {
		p.Print("\nno bill of materials\n")
		return
	}
	p.Print("\nbills of materials\n")
	for _, g := range groups {
		p.Field(14, "  "+g.what, subjects(r, g.subjects)+"; "+g.contents)
	}
}
