package notices_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/modcache"
	"github.com/radome-io/fleeting-plugin-openstack/internal/notices"
	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// TestLinkedModules builds our executables and holds what is collected against what
// `go version -m` says: each module is there with its licence and its text, and
// where the source of those under the MPL is.
func TestLinkedModules(t *testing.T) {
	t.Parallel()
	places, err := modcache.Ask(t.Context(), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"fleeting-plugin", "fleeting-plugin-openstack"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), command)
			output(t, "build", "-trimpath", "-buildvcs=false", "-o", file, "../../cmd/"+command)
			exe, err := sbom.ReadFile(file, sbom.Options{Licenses: sbom.NewModuleCache(places.ModuleCache), SkipDigest: true})
			if err != nil {
				t.Fatal(err)
			}
			collected, err := notices.Collect(notices.Options{Places: places}, exe)
			if err != nil {
				t.Fatal(err)
			}
			text, licenses, modules := string(collected), notices.ParseLicenses(collected), 0
			for line := range strings.Lines(output(t, "version", "-m", file)) {
				fields := strings.Fields(line)
				if len(fields) < 3 || fields[0] != "dep" {
					continue
				}
				modules++
				path, version := fields[1], fields[2]
				license := licenses.License(path, version)
				if license == "" {
					t.Errorf("%s %s has no known licence", path, version)
				}
				if !strings.Contains(text, "\n"+path+" "+version+": ") {
					t.Errorf("%s %s has no text", path, version)
				}
				if strings.Contains(license, "MPL") && !strings.Contains(text, "\n"+path+" "+version+"\n  https://proxy.golang.org/") {
					t.Errorf("%s %s is under %s, and nothing says where its source is", path, version, license)
				}
			}
			if modules < 15 || len(licenses) != modules+1 {
				t.Errorf("%d modules, %d licences", modules, len(licenses))
			}
			if !strings.Contains(text, "The Go Authors") || !strings.Contains(text, "std go") {
				t.Error("the licence of Go is not there")
			}
			t.Logf("%d modules, %d bytes of texts", modules, len(text))
		})
	}
}

func output(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	return string(out)
}
