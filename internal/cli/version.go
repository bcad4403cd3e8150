package cli

import (
	"runtime"
	"runtime/debug"
)

// Version says what was built, from what.
type Version struct {
	// Name is the name of the executable.
	Name string `json:"name"`
	// Version is a semantic version without "v"; "0.0.0-dev" when it was built
	// from a work tree.
	Version string `json:"version"`
	// Revision is the commit, or "".
	Revision string `json:"revision,omitempty"`
	// Go is the version of the toolchain.
	Go string `json:"go"`
	// Platform is os/arch.
	Platform string `json:"platform"`
}

// developmentVersion is the version of what was not built by a release.
const developmentVersion = "0.0.0-dev"

// NewVersion fills a Version in. version and revision come from the linker;
// where they are empty, the module version and the commit that the toolchain
// stamped into the executable are used.
func NewVersion(name, version, revision string) Version {
	v := Version{
		Name: name, Version: version, Revision: revision,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if ok && v.Version == "" && len(info.Main.Version) > 1 && info.Main.Version[0] == 'v' {
		v.Version = info.Main.Version[1:]
	}
	if v.Version == "" {
		v.Version = developmentVersion
	}
	if ok && v.Revision == "" {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				v.Revision = setting.Value
			}
		}
	}
	return v
}
