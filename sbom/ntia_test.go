package sbom_test

import (
	"testing"
)

// TestNTIAMinimumElements checks the seven data fields of "The Minimum Elements
// For a Software Bill of Materials" (NTIA, July 2021) in both formats: supplier,
// component name, version, other unique identifiers, dependency relationship,
// author of the data, timestamp.
func TestNTIAMinimumElements(t *testing.T) {
	t.Parallel()
	for name, doc := range documents(t) {
		raw, err := doc.SPDX()
		if err != nil {
			t.Fatal(err)
		}
		spdxElements(t, name, decode(t, raw))
		raw, err = doc.CycloneDX()
		if err != nil {
			t.Fatal(err)
		}
		cdxElements(t, name, decode(t, raw))
	}
}

func spdxElements(t *testing.T, name string, doc map[string]any) {
	t.Helper()
	creation, _ := doc["creationInfo"].(map[string]any)
	if creators, _ := creation["creators"].([]any); len(creators) != 2 || creation["created"] != "2026-01-02T02:04:05Z" {
		t.Errorf("%s: author or timestamp missing: %v", name, creation)
	}
	related := map[any]bool{}
	relations, _ := doc["relationships"].([]any)
	for _, r := range relations {
		r, _ := r.(map[string]any)
		related[r["spdxElementId"]], related[r["relatedSpdxElement"]] = true, true
	}
	packages, _ := doc["packages"].([]any)
	if len(packages) == 0 {
		t.Errorf("%s: no packages", name)
	}
	for _, p := range packages {
		p, _ := p.(map[string]any)
		local := p["name"] == "example.com/local" // code from a folder has no version
		if p["supplier"] == "NOASSERTION" || p["name"] == "" || (p["versionInfo"] == nil && !local) || !related[p["SPDXID"]] {
			t.Errorf("%s: supplier, name, version or relationship missing: %v", name, p)
		}
		if p["checksums"] == nil && p["externalRefs"] == nil {
			t.Errorf("%s: no other unique identifier: %v", name, p["name"])
		}
	}
}

func cdxElements(t *testing.T, name string, doc map[string]any) {
	t.Helper()
	meta, _ := doc["metadata"].(map[string]any)
	if meta["authors"] == nil || meta["timestamp"] == nil || meta["component"] == nil {
		t.Errorf("%s: author, timestamp or subject missing: %v", name, meta)
	}
	related := map[any]bool{}
	dependencies, _ := doc["dependencies"].([]any)
	for _, d := range dependencies {
		d, _ := d.(map[string]any)
		related[d["ref"]] = true
		on, _ := d["dependsOn"].([]any)
		for _, ref := range on {
			related[ref] = true
		}
	}
	components, _ := doc["components"].([]any)
	for _, c := range append(components, meta["component"]) {
		c, _ := c.(map[string]any)
		supplier, _ := c["supplier"].(map[string]any)
		local := c["name"] == "example.com/local"
		if supplier["name"] == nil || supplier["name"] == "unknown" || c["name"] == nil || (c["version"] == nil && !local) {
			t.Errorf("%s: supplier, name or version missing: %v", name, c)
		}
		if !related[c["bom-ref"]] {
			t.Errorf("%s: no relationship: %v", name, c["bom-ref"])
		}
	}
}
