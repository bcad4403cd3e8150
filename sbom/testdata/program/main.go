// Command program is built by the tests: a small executable with dependencies.
package main

import (
	"fmt"
	"os"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/licensecheck"
	digest "github.com/opencontainers/go-digest"
	"golang.org/x/mod/module"
)

func main() {
	fmt.Fprintln(os.Stdout, cmp.Equal(1, 1), cdx.NewBOM().Version, module.CanonicalVersion("v1.0.0"),
		semver.MustParse("1.0.0"), licensecheck.Scan(nil).Percent, digest.FromString(""))
}
