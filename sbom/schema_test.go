package sbom_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/sbom-utility/resources"
	"github.com/google/licensecheck"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// documents are the shapes that a release can have.
func documents(t *testing.T) map[string]*sbom.Document {
	t.Helper()
	exe := self(t, sbom.Options{Licenses: sbom.NewModuleCache(goEnv(t, "GOMODCACHE"))})
	exe.Files = []sbom.File{{Name: "LICENSE", SHA256: strings.Repeat("ab", 32)}}
	exe.Modules = append(exe.Modules, sbom.Module{
		Path: "example.com/Odd_name", Version: "v1.0.0+incompatible", Replaces: "example.com/old@v1.0.0", License: "MIT AND Apache-2.0",
	}, sbom.Module{Path: "example.com/local", Replaces: "example.com/local@v1.0.0"})
	other := exe
	other.Platform = "windows/amd64"
	foreign := sbom.Executable{Name: "plugin", Platform: "linux/s390x", SHA256: strings.Repeat("cd", 32)}
	proprietary := info()
	proprietary.License = "LicenseRef-Acme"
	proprietaryDoc, err := sbom.New(proprietary, exe)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*sbom.Document{
		"one platform": document(t, exe), "two platforms": document(t, exe, other),
		"no build information": document(t, foreign), "mixed": document(t, exe, foreign), "own licence": proprietaryDoc,
	}
}

func TestCycloneDXMatchesItsSchema(t *testing.T) {
	t.Parallel()
	schema := compile(t, map[string][]byte{
		"http://cyclonedx.org/schema/bom-1.6.schema.json":  cdxFile(t, "bom-1.6.schema.json"),
		"http://cyclonedx.org/schema/spdx.schema.json":     cdxFile(t, "spdx.schema.json"),
		"http://cyclonedx.org/schema/jsf-0.82.schema.json": embedded(t, "schema/cyclonedx/1.6/jsf-0.82.schema.json"),
	}, "http://cyclonedx.org/schema/bom-1.6.schema.json")
	for name, doc := range documents(t) {
		raw, err := doc.CycloneDX()
		if err != nil {
			t.Fatal(err)
		}
		validate(t, schema, name, raw)
		broken := decode(t, raw)
		broken["components"] = "none"
		if schema.Validate(broken) == nil {
			t.Error("the schema accepts what is wrong: the test proves nothing")
		}
	}
}

func TestSPDXMatchesItsSchema(t *testing.T) {
	t.Parallel()
	schema := compile(t, map[string][]byte{
		"http://spdx.org/rdf/terms/2.3": embedded(t, "schema/spdx/2.3/spdx-schema.json"),
	}, "http://spdx.org/rdf/terms/2.3")
	for name, doc := range documents(t) {
		raw, err := doc.SPDX()
		if err != nil {
			t.Fatal(err)
		}
		validate(t, schema, name, raw)
		broken := decode(t, raw)
		delete(broken, "creationInfo")
		if schema.Validate(broken) == nil {
			t.Error("the schema accepts what is wrong: the test proves nothing")
		}
	}
}

// TestLicenseIdentifiersAreListed guards the list of exceptions in license.go.
func TestLicenseIdentifiersAreListed(t *testing.T) {
	t.Parallel()
	enum, _ := decode(t, cdxFile(t, "spdx.schema.json"))["enum"].([]any)
	unlisted := 0
	for _, l := range licensecheck.BuiltinLicenses() {
		onList := slices.Contains(enum, any(l.ID))
		if onList && l.ID != "MIT" && l.ID != "AGPL-3.0-only" {
			continue
		}
		unlisted++
		i := info()
		i.License = l.ID
		doc, err := sbom.New(i, sbom.Executable{Name: "plugin", SHA256: "00"})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := doc.CycloneDX()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(`"id":"`+l.ID+`"`)) != onList {
			t.Errorf("%s: on SPDX's list = %v, written otherwise", l.ID, onList)
		}
	}
	if unlisted < 3 {
		t.Error("every identifier is listed: the exceptions are not needed any more")
	}
}

func compile(t *testing.T, files map[string][]byte, id string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	for url, raw := range files {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(url, doc); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile(id)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, name string, raw []byte) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// cdxFile reads a schema that the CycloneDX library ships.
func cdxFile(t *testing.T, name string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "schema", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func embedded(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := resources.BOMSchemaFiles.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
