package plugin

import (
	"regexp"
	"strings"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
)

// platform is what an image says about the servers made of it, in the words
// of Go.
type platform struct{ os, arch string }

// platformOf reads os_type and architecture; linux and amd64 unless they say
// otherwise.
func platformOf(image cloud.Image) platform {
	p := platform{os: "linux", arch: "amd64"}
	if os := strings.ToLower(image.OSType); platformName.MatchString(os) {
		p.os = os
	}
	if arch := strings.ToLower(image.Architecture); platformName.MatchString(arch) {
		p.arch = arch
	}
	switch p.arch {
	case "x86_64", "x64":
		p.arch = "amd64"
	case "aarch64", "armv8", "arm64v8":
		p.arch = "arm64"
	case "i386", "i486", "i586", "i686", "x86":
		p.arch = "386"
	case "armv7l", "armv7", "armhf":
		p.arch = "arm"
	}
	return p
}

// String is the form that servers carry in their metadata: "linux/amd64".
func (p platform) String() string { return p.os + "/" + p.arch }

func parsePlatform(text string) (platform, bool) {
	os, arch, _ := strings.Cut(text, "/")
	return platform{os: os, arch: arch}, platformName.MatchString(os) && platformName.MatchString(arch)
}

// platformName is what a system or an architecture may be called; an image may
// say anything.
var platformName = regexp.MustCompile(`^[a-z0-9_]{1,20}$`)

// complete fills in what connector_config leaves open.
func (p platform) complete(c provider.ConnectorConfig) provider.ConnectorConfig {
	if c.OS == "" {
		c.OS = p.os
	}
	if c.Arch == "" {
		c.Arch = p.arch
	}
	if c.Protocol == "" {
		c.Protocol = provider.ProtocolSSH
		if c.OS == "windows" {
			c.Protocol = provider.ProtocolWinRM
		}
	}
	if c.ProtocolPort == 0 {
		c.ProtocolPort = provider.DefaultProtocolPorts[c.Protocol]
	}
	return c
}
