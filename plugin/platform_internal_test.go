package plugin

import (
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
)

// TestPlatforms: an image, and the metadata of a server, may say anything.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ os, arch, want string }{
		{"", "", "linux/amd64"},
		{"Windows", "X86_64", "windows/amd64"},
		{"linux", "aarch64", "linux/arm64"},
		{"linux\x1b[2J", "x86 64", "linux/amd64"},
		{"../../etc", "riscv64", "linux/riscv64"},
	} {
		if got := platformOf(cloud.Image{OSType: row.os, Architecture: row.arch}).String(); got != row.want {
			t.Errorf("%q %q: got %s, want %s", row.os, row.arch, got, row.want)
		}
	}
	for text, want := range map[string]bool{"windows/amd64": true, "": false, "/": false, "linux": false, "linux/": false, "a/b/c": false, "Linux/amd64": false, "\x00/x": false} {
		if _, ok := parsePlatform(text); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
}
