package sbom

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// CycloneDX returns the document as CycloneDX 1.6 JSON, the media type
// application/vnd.cyclonedx+json. https://cyclonedx.org/docs/1.6/json/
func (d *Document) CycloneDX() ([]byte, error) {
	bom := cdx.NewBOM()
	bom.SerialNumber = d.serial()
	root, executables := d.rootComponent()
	bom.Metadata = &cdx.Metadata{
		Timestamp: d.info.Created.Format(time.RFC3339),
		Tools: &cdx.ToolsChoice{Components: &[]cdx.Component{{
			Type: cdx.ComponentTypeApplication, Name: d.info.Tool, Version: d.info.ToolVersion,
		}}},
		Authors:    &[]cdx.OrganizationalContact{{Name: orUnknown(d.info.Supplier)}},
		Supplier:   &cdx.OrganizationalEntity{Name: orUnknown(d.info.Supplier)},
		Component:  &root,
		Lifecycles: &[]cdx.Lifecycle{{Phase: cdx.LifecyclePhasePostBuild}},
	}
	components := executables
	for _, e := range d.executables {
		for _, f := range e.Files {
			components = append(components, d.fileComponent(e, f))
		}
	}
	for _, m := range d.mains() {
		components = append(components, moduleComponent(m, cdx.ComponentTypeApplication))
	}
	for _, m := range d.Modules() {
		components = append(components, moduleComponent(m, cdx.ComponentTypeLibrary))
	}
	bom.Components = &components
	dependencies := d.dependencies(root.BOMRef)
	bom.Dependencies = &dependencies
	bom.Compositions = d.compositions()

	var buf bytes.Buffer
	if err := cdx.NewBOMEncoder(&buf, cdx.BOMFileFormatJSON).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("encoding CycloneDX: %w", err)
	}
	return buf.Bytes(), nil
}

// rootComponent returns what the document is about: the executable, if there is
// one, or the release with the executables as components of their own.
func (d *Document) rootComponent() (cdx.Component, []cdx.Component) {
	if len(d.executables) == 1 {
		return d.executableComponent(d.executables[0]), nil
	}
	root := cdx.Component{
		BOMRef: "release:" + d.info.Name + "@" + d.info.Version, Type: cdx.ComponentTypeApplication,
		Name: d.info.Name, Version: d.info.Version, Licenses: licensesCDX(d.info.License),
		Supplier: &cdx.OrganizationalEntity{Name: orUnknown(d.info.Supplier)},
	}
	all := make([]cdx.Component, len(d.executables))
	for i, e := range d.executables {
		all[i] = d.executableComponent(e)
	}
	return root, all
}

func (d *Document) executableComponent(e Executable) cdx.Component {
	properties := []cdx.Property{{Name: "fleeting:platform", Value: e.Platform}}
	if e.GoVersion != "" {
		properties = append(properties,
			cdx.Property{Name: "golang:version", Value: e.GoVersion}, cdx.Property{Name: "golang:package", Value: e.Package})
	}
	for _, s := range e.Settings {
		properties = append(properties, cdx.Property{Name: "golang:build:" + s.Key, Value: s.Value})
	}
	return cdx.Component{
		BOMRef: e.key(), Type: cdx.ComponentTypeApplication, Name: e.Name, Version: d.info.Version,
		Supplier: &cdx.OrganizationalEntity{Name: orUnknown(d.info.Supplier)}, Licenses: licensesCDX(d.info.License),
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: e.SHA256}}, Properties: &properties,
	}
}

func (d *Document) fileComponent(e Executable, f File) cdx.Component {
	return cdx.Component{
		BOMRef: e.key() + "/" + f.Name, Type: cdx.ComponentTypeFile, Name: f.Name, Version: d.info.Version,
		Supplier:   &cdx.OrganizationalEntity{Name: orUnknown(d.info.Supplier)},
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: f.SHA256}},
		Properties: &[]cdx.Property{{Name: "fleeting:platform", Value: e.Platform}},
	}
}

func moduleComponent(m Module, kind cdx.ComponentType) cdx.Component {
	c := cdx.Component{
		BOMRef: m.key(), Type: kind, Name: m.Path, Version: m.Version, PackageURL: m.PURL(),
		Supplier: &cdx.OrganizationalEntity{Name: orUnknown(supplierOf(m.Path))}, Licenses: licensesCDX(m.License),
	}
	if m.Path == stdlib {
		c.Supplier.Name = "go.dev"
	}
	var properties []cdx.Property
	if digest := m.digest(); digest != "" {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: digest}}
		properties = append(properties, cdx.Property{Name: "golang:sum", Value: m.Sum})
	}
	if m.Replaces != "" {
		properties = append(properties, cdx.Property{Name: "golang:replaces", Value: m.Replaces})
	}
	if len(properties) > 0 {
		c.Properties = &properties
	}
	return c
}

// dependencies hangs every module on the main module; see spdxWriter.relations.
func (d *Document) dependencies(root string) []cdx.Dependency {
	on := map[string][]string{root: nil}
	for _, e := range d.executables {
		from := e.key()
		if from != root {
			on[root] = append(on[root], from)
		}
		for _, f := range e.Files {
			on[from] = append(on[from], e.key()+"/"+f.Name)
		}
		if e.Main.Path != "" {
			main := e.main(d.info).key()
			on[from] = append(on[from], main)
			from = main
		}
		for _, m := range e.linked() {
			on[from] = append(on[from], m.key())
		}
	}
	var all []cdx.Dependency
	for ref, refs := range on {
		slices.Sort(refs)
		refs = slices.Compact(refs)
		all = append(all, cdx.Dependency{Ref: ref, Dependencies: &refs})
	}
	slices.SortFunc(all, func(a, b cdx.Dependency) int { return strings.Compare(a.Ref, b.Ref) })
	return all
}

// compositions states what is known to be complete: the linker's module list
// is, and of a file without build information nothing is known.
func (d *Document) compositions() *[]cdx.Composition {
	var known, unknown []cdx.BOMReference
	for _, e := range d.executables {
		if e.GoVersion == "" {
			unknown = append(unknown, cdx.BOMReference(e.key()))
			continue
		}
		known = append(known, cdx.BOMReference(e.key()))
		if e.Main.Path != "" {
			known = append(known, cdx.BOMReference(e.main(d.info).key()))
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	var all []cdx.Composition
	if len(known) > 0 {
		all = append(all, cdx.Composition{Aggregate: cdx.CompositionAggregateComplete, Dependencies: &known})
	}
	if len(unknown) > 0 {
		all = append(all, cdx.Composition{Aggregate: cdx.CompositionAggregateUnknown, Dependencies: &unknown})
	}
	return &all
}

// serial derives a version 8 UUID (RFC 9562, section 5.8) from the content.
func (d *Document) serial() string {
	hex := []byte(d.fingerprint()[:32])
	hex[12] = '8'
	hex[16] = "89ab"[hex[16]%4]
	return fmt.Sprintf("urn:uuid:%s-%s-%s-%s-%s", hex[:8], hex[8:12], hex[12:16], hex[16:20], hex[20:])
}

func licensesCDX(expression string) *cdx.Licenses {
	switch {
	case expression == "":
		return nil
	case isID(expression):
		return &cdx.Licenses{{License: &cdx.License{ID: expression}}}
	default:
		return &cdx.Licenses{{Expression: expression}}
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
