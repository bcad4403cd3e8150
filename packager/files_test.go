package packager_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

func filesIn(files []packager.LayerFile) []string {
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names
}

// TestFilesAreListed: what is to be published, what would be and what is
// published show the same files, of every platform.
func TestFilesAreListed(t *testing.T) {
	t.Parallel()
	dir := sampleplugin.Dist(t, "1.0.0", "linux/amd64", "windows/amd64")
	sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/plugin.yaml"), []byte("a: b\n"), 0o644)
	sampleplugin.Write(t, filepath.Join(dir, "windows/amd64/helper.exe"), []byte("MZ"), 0o755)
	scanned := scan(t, dir)
	_, packed := pack(t, "1.0.0", scanned)
	repo := repository(t, registrytest.NewReferrers(t).Host+"/demo")
	options := packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata(), SkipSBOM: true}, DryRun: true}
	planned, err := packager.Release(t.Context(), scanned, version(t, "1.0.0"), repo, options)
	if err != nil {
		t.Fatal(err)
	}
	options.DryRun = false
	released, err := packager.Release(t.Context(), scanned, version(t, "1.0.0"), repo, options)
	if err != nil {
		t.Fatal(err)
	}
	report, err := packager.Inspect(t.Context(), repo, "1.0.0", packager.InspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string]map[string][]packager.LayerFile{"packed": {}, "planned": {}, "released": {}, "inspected": {}}
	for what, platforms := range map[string][]packager.PlatformResult{"packed": packed.Platforms, "planned": planned.Platforms, "released": released.Platforms} {
		for _, p := range platforms {
			lists[what][p.Platform] = p.Files
			if p.Files[len(p.Files)-1].Digest == "" {
				t.Errorf("%s, %s: no digest", what, p.Platform)
			}
		}
	}
	for _, p := range report.Platforms {
		lists["inspected"][p.Platform] = p.Files
	}
	for what, got := range lists {
		if diff := cmp.Diff(lists["packed"], got); diff != "" {
			t.Errorf("packed and %s (-packed +%s):\n%s", what, what, diff)
		}
	}
	if got := filesIn(lists["inspected"]["linux/amd64"]); !slices.Equal(got, []string{"plugin", "plugin.yaml"}) {
		t.Errorf("linux/amd64: %v", got)
	}
	if got := filesIn(lists["inspected"]["windows/amd64"]); !slices.Equal(got, []string{"helper.exe", "plugin.exe"}) {
		t.Errorf("windows/amd64: %v", got)
	}
	quick, err := packager.Inspect(t.Context(), repo, "1.0.0", packager.InspectOptions{SkipFiles: true})
	if err != nil || quick.Platforms[0].Files != nil {
		t.Errorf("without files: %v, %v", quick.Platforms[0].Files, err)
	}
}
