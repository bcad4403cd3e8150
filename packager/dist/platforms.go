package dist

import (
	"debug/buildinfo"
	"path/filepath"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// platformSet is what may be published.
type platformSet []artifact.Platform

func knownPlatforms() platformSet { return artifact.Known() }

func (s platformSet) has(p artifact.Platform) bool { return slices.Contains(s, p) }

func (s platformSet) system(name string) bool { return slices.Contains(s.systems(), name) }

func (s platformSet) systems() []string {
	var names []string
	for _, p := range s {
		names = append(names, p.OS())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// archs returns the folder names below a system's folder.
func (s platformSet) archs(system string) []string {
	var names []string
	for _, p := range s {
		if p.OS() == system {
			names = append(names, strings.TrimPrefix(p.Dir(), system+"/"))
		}
	}
	return names
}

// refuse explains why a folder's name is no platform.
func (s platformSet) refuse(path, system, arch string) error {
	e := &InputError{Path: path, Problem: "is not a platform that plugins are published for"}
	if names := s.archs(system); len(names) > 0 {
		e.Remedy = "architectures of " + system + " are " + strings.Join(names, ", ")
	}
	switch {
	case arch == "arm":
		e.Problem = "does not say which version of ARM the executable needs"
		e.Remedy = "rename the folder to " + armFolder(path, system)
	case strings.HasPrefix(arch, "amd64v"):
		e.Problem = "names an amd64 level that the runner's installer does not find"
		e.Remedy = "build with GOAMD64=v1 and name the folder " + system + "/amd64"
	case arch == "arm64v8":
		e.Remedy = "rename the folder to " + system + "/arm64"
	case arch == "x86_64":
		e.Remedy = "rename the folder to " + system + "/amd64"
	case arch == "aarch64":
		e.Remedy = "rename the folder to " + system + "/arm64"
	}
	return e
}

// armFolder names the right folder for a plain arm one, by what the executable
// was built for.
func armFolder(path, system string) string {
	for _, name := range []string{"plugin", "plugin.exe"} {
		info, err := buildinfo.ReadFile(filepath.Join(path, name))
		if err != nil {
			continue
		}
		for _, setting := range info.Settings {
			if version, _, _ := strings.Cut(setting.Value, ","); setting.Key == "GOARM" {
				return system + "/armv" + version + " (the executable was built with GOARM=" + version + ")"
			}
		}
	}
	return system + "/armv5, " + system + "/armv6 or " + system + "/armv7, whichever GOARM it was built with"
}
