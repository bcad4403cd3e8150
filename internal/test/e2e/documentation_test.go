//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
)

// testDocumentation runs the tests of the module that knows Kubernetes: its API
// server's code takes the YAML of the documentation, and refuses broken YAML.
func testDocumentation(t *testing.T, r *report) {
	r.check(t, "k8s.io/kubernetes "+required(t, "kube", "k8s.io/kubernetes"), "strict decoding, validation and restricted Pod Security of all YAML in docs", func(t *testing.T) {
		out := run(t, builtAlike(), "go", "test", "-C", "kube", "-count=1", "-v", "./...")
		for _, test := range []string{"TestDocumentationIsValid", "TestImagesArePinned", "TestMistakesAreFound", "TestObjectsAreRefused", "TestImageVolumesTurnedOff", "TestEachShapeIsWhole", "TestValuesAgreeWithConfig"} {
			if !strings.Contains(out, "--- PASS: "+test) {
				t.Errorf("%s did not run:\n%s", test, out)
			}
		}
	})
}
