package sampleplugin

import (
	"os"
	"testing"
)

// TestPrepare builds what the tests of other packages use into the folder that
// SAMPLEPLUGIN_EXECUTABLES names, for a system without a go command. It is not a
// test.
func TestPrepare(t *testing.T) {
	t.Parallel()
	if os.Getenv(kept) == "" {
		return
	}
	for version, platforms := range map[string][]string{
		"1.0.0": {"linux/amd64", "linux/arm64", "linux/armv7", "windows/amd64", "windows/arm64", "darwin/arm64", "freebsd/amd64", "android/arm64"},
		"1.0.1": {"linux/amd64", "linux/arm64", "windows/amd64", "darwin/arm64"}, "1.2.3": {"linux/amd64", "linux/arm64", "linux/armv7", "windows/amd64"},
		"1.2.3-rc.1": {"linux/armv7", "windows/arm64"}, "1.0.0-other": {"linux/amd64"}, "1.0.2": {"linux/amd64"}, "1.1.0": {"linux/amd64"},
		"2.0.0-rc.1": {"linux/amd64"}, "9.9.9": {"linux/amd64"}, "dev": {"linux/amd64", "windows/amd64"}, "v1.0.0": {"linux/amd64", "windows/amd64"},
	} {
		for _, platform := range platforms {
			Build(t, platform, version)
		}
	}
}
