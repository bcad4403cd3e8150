package sbom

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const (
	noAssertion = "NOASSERTION"
	// spdxDocument is the identifier that the format reserves for the document.
	spdxDocument = "DOCUMENT"
)

// notInID is what an SPDX identifier may not hold.
var notInID = regexp.MustCompile(`[^A-Za-z0-9.]+`)

// SPDX returns the document as SPDX 2.3 JSON, the media type
// application/spdx+json. https://spdx.github.io/spdx-spec/v2.3/
func (d *Document) SPDX() ([]byte, error) {
	w := spdxWriter{doc: d, ids: map[string]common.ElementID{}}
	var buf bytes.Buffer
	if err := spdxjson.Write(w.document(), &buf, spdxjson.EscapeHTML(false)); err != nil {
		return nil, fmt.Errorf("encoding SPDX: %w", err)
	}
	return buf.Bytes(), nil
}

// spdxWriter builds one SPDX document.
type spdxWriter struct {
	doc *Document
	ids map[string]common.ElementID
	out spdx.Document
}

func (w *spdxWriter) document() *spdx.Document {
	info := w.doc.info
	w.out = spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: spdxDocument,
		DocumentName:      info.Name + "-" + info.Version,
		DocumentNamespace: "https://spdx.org/spdxdocs/" + escape(info.Name) + "-" + w.doc.fingerprint(),
		CreationInfo: &spdx.CreationInfo{
			Created: info.Created.Format(time.RFC3339),
			Creators: []common.Creator{
				{CreatorType: "Organization", Creator: cmp.Or(info.Supplier, noAssertion)},
				{CreatorType: "Tool", Creator: strings.Trim(info.Tool+"-"+info.ToolVersion, "-")},
			},
		},
	}
	for _, e := range w.doc.executables {
		w.executable(e)
	}
	for _, m := range w.doc.mains() {
		w.module(m, "APPLICATION")
	}
	for _, m := range w.doc.Modules() {
		w.module(m, "LIBRARY")
	}
	w.relations()
	return &w.out
}

func (w *spdxWriter) executable(e Executable) {
	p := w.pkg(e.key(), "Executable-"+e.Platform+"-"+e.Name)
	p.PackageName = e.Name
	p.PackageVersion = w.doc.info.Version
	p.PackageFileName = e.Name
	p.PackageSupplier = supplierSPDX(w.doc.info.Supplier)
	p.PackageLicenseDeclared = cmp.Or(w.doc.info.License, noAssertion)
	p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: e.SHA256}}
	p.PrimaryPackagePurpose = "APPLICATION"
	p.PackageSummary = "executable for " + cmp.Or(e.Platform, "an unnamed platform")
	p.PackageSourceInfo = e.sourceInfo()
	w.relate(spdxDocument, common.TypeRelationshipDescribe, p.PackageSPDXIdentifier)
	for _, f := range e.Files {
		c := w.pkg(e.key()+"/"+f.Name, "File-"+e.Platform+"-"+f.Name)
		c.PackageName, c.PackageFileName, c.PackageVersion = f.Name, f.Name, w.doc.info.Version
		c.PackageSupplier = supplierSPDX(w.doc.info.Supplier)
		c.PackageLicenseDeclared = noAssertion
		c.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: f.SHA256}}
		c.PrimaryPackagePurpose = "FILE"
		w.relate(p.PackageSPDXIdentifier, common.TypeRelationshipOther, c.PackageSPDXIdentifier)
	}
}

func (w *spdxWriter) module(m Module, purpose string) {
	p := w.pkg(m.key(), "Module-"+m.Path+"-"+m.Version)
	p.PackageName, p.PackageVersion = m.Path, m.Version
	p.PackageSupplier = supplierSPDX(cmp.Or(supplierOf(m.Path), "go.dev"))
	p.PackageLicenseDeclared = cmp.Or(m.License, noAssertion)
	p.PrimaryPackagePurpose = purpose
	p.PackageExternalReferences = []*spdx.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: m.PURL(),
	}}
	if digest := m.digest(); digest != "" {
		p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: digest}}
		p.PackageSourceInfo = "go.sum " + m.Sum
	}
	if m.Replaces != "" {
		p.PackageComment = "replaces " + m.Replaces
	}
}

// relations says what depends on what. Build information lists the modules but
// not which of them asks for which, so each hangs directly on the main module.
func (w *spdxWriter) relations() {
	for _, e := range w.doc.executables {
		from := w.ids[e.key()]
		if e.Main.Path != "" {
			main := w.ids[e.main(w.doc.info).key()]
			w.relate(from, common.TypeRelationshipGeneratedFrom, main)
			from = main
		}
		for _, m := range e.linked() {
			w.relate(from, common.TypeRelationshipDependsOn, w.ids[m.key()])
		}
	}
	w.out.Relationships = slices.CompactFunc(sortedRelations(w.out.Relationships), func(a, b *spdx.Relationship) bool {
		return *a == *b
	})
}

func sortedRelations(r []*spdx.Relationship) []*spdx.Relationship {
	slices.SortFunc(r, func(a, b *spdx.Relationship) int {
		return cmp.Or(cmp.Compare(a.RefA.ElementRefID, b.RefA.ElementRefID),
			cmp.Compare(a.Relationship, b.Relationship), cmp.Compare(a.RefB.ElementRefID, b.RefB.ElementRefID))
	})
	return r
}

func (w *spdxWriter) relate(from common.ElementID, kind string, to common.ElementID) {
	w.out.Relationships = append(w.out.Relationships, &spdx.Relationship{
		RefA: common.DocElementID{ElementRefID: from}, RefB: common.DocElementID{ElementRefID: to}, Relationship: kind,
	})
}

// pkg adds a package; key is unique in the document and name only readable.
func (w *spdxWriter) pkg(key, name string) *spdx.Package {
	sum := sha256.Sum256([]byte(key))
	id := common.ElementID(strings.Trim(notInID.ReplaceAllString(name, "-"), "-") + "-" + hex.EncodeToString(sum[:4]))
	w.ids[key] = id
	p := &spdx.Package{
		PackageSPDXIdentifier: id, PackageDownloadLocation: noAssertion, IsFilesAnalyzedTagPresent: true,
		PackageLicenseConcluded: noAssertion, PackageCopyrightText: noAssertion,
	}
	w.out.Packages = append(w.out.Packages, p)
	return p
}

func supplierSPDX(name string) *common.Supplier {
	if name == "" {
		return &common.Supplier{Supplier: noAssertion}
	}
	return &common.Supplier{SupplierType: "Organization", Supplier: name}
}

// key identifies the executable within a document.
func (e Executable) key() string { return "file:" + e.Platform + "/" + e.Name + "@sha256:" + e.SHA256 }

// key identifies the module within a document.
func (m Module) key() string {
	return strings.TrimSpace(strings.Join([]string{m.PURL(), m.Sum, m.Replaces}, " "))
}

// digest returns the go.sum checksum in hexadecimal. It covers the list of the
// module's files and their digests, not a single archive.
func (m Module) digest() string {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(raw) != sha256.Size {
		return ""
	}
	return hex.EncodeToString(raw)
}

// sourceInfo puts toolchain and build settings into one line.
func (e Executable) sourceInfo() string {
	if e.GoVersion == "" {
		return "no Go build information"
	}
	lines := []string{"built with " + e.GoVersion + " from " + e.Package}
	for _, s := range e.Settings {
		lines = append(lines, s.Key+"="+s.Value)
	}
	return strings.Join(lines, "; ")
}

// fingerprint identifies the content, so that two different documents never
// share a namespace or serial number and the same one always has the same.
func (d *Document) fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", d.info)
	for _, e := range d.executables {
		fmt.Fprintf(h, "%q\n", fmt.Sprint(e))
	}
	return hex.EncodeToString(h.Sum(nil))
}
