package docstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// TestFormatNamesEverything: the page on the artifact format names each
// platform, annotation and media type that is published.
func TestFormatNamesEverything(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "artifact-format.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{
		artifact.AnnotationLayer, artifact.AnnotationMetadata, artifact.AnnotationExecutable, artifact.EnvVersion,
		artifact.MediaTypeBundle, artifact.MediaTypeSimpleSigning, artifact.MediaTypeDSSE, artifact.MediaTypeSPDX, artifact.MediaTypeCycloneDX,
	}
	for _, p := range artifact.Known() {
		names = append(names, "`"+p.OS()+"/"+p.Arch()+p.Variant()+"`")
	}
	for _, name := range names {
		if !strings.Contains(string(page), name) {
			t.Errorf("the page does not name %s", name)
		}
	}
}
