package dist_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// TestOnePlatformOfAnotherBuild: a platform that was not built again is noticed
// without running it.
func TestOnePlatformOfAnotherBuild(t *testing.T) {
	t.Parallel()
	dir := sampleplugin.Dist(t, "1.0.0", "linux/amd64", "linux/arm64", "windows/amd64")
	if warnings, err := scan(t, dir).CompareVersion(t.Context(), parse(t, "1.0.0")); err != nil || len(warnings) > 0 {
		t.Errorf("one build: %v, %v", warnings, err)
	}
	if warnings, err := scan(t, dir).CompareLDFlags(t.Context(), "-s -w -X main.version=1.0.0"); err != nil || len(warnings) > 0 {
		t.Errorf("its flags: %v, %v", warnings, err)
	}
	warnings, err := scan(t, dir).CompareLDFlags(t.Context(), "-s -w -X main.version=1.0.1")
	if err != nil || len(warnings) != 1 || !strings.Contains(filepath.ToSlash(warnings[0].String()), `windows/amd64/plugin.exe: "1.0.1" is not in it, to which the -ldflags set main.version`) {
		t.Errorf("flags of another build: %v, %v", warnings, err)
	}
	for _, p := range []string{"linux/amd64", "linux/arm64"} {
		sampleplugin.Copy(t, sampleplugin.Build(t, p, "1.0.1"), filepath.Join(dir, filepath.FromSlash(p), "plugin"), 0o755)
	}
	_, err = scan(t, dir).CompareVersion(t.Context(), parse(t, "1.0.1"))
	if !errors.Is(err, dist.ErrInput) || !strings.Contains(err.Error(), "windows") || strings.Contains(filepath.ToSlash(err.Error()), "linux/arm64/plugin: does") {
		t.Errorf("windows is of the build before: %v", err)
	}
	warnings, err = scan(t, sampleplugin.Dist(t, "1.0.0", "darwin/arm64")).CompareVersion(t.Context(), parse(t, "1.0.0"))
	if err != nil || len(warnings) != 1 {
		t.Errorf("no executable for this machine, and the right version: %v, %v", warnings, err)
	}
}
