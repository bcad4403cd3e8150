package plugin

import (
	"runtime/debug"

	fleetingplugin "gitlab.com/gitlab-org/fleeting/fleeting/plugin"
)

// VersionInfo describes the executable, for the host and for "version".
func VersionInfo(version, revision string) fleetingplugin.VersionInfo {
	return versionInfo(options{version: version, revision: revision})
}

func versionInfo(o options) fleetingplugin.VersionInfo {
	v := fleetingplugin.VersionInfo{Name: "fleeting-plugin-openstack", Version: o.version, Revision: o.revision}
	if v.Version == "" {
		v.Version = "dev"
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision" && v.Revision == "":
			v.Revision = setting.Value
		case setting.Key == "vcs.time":
			v.BuiltAt = setting.Value
		}
	}
	return v
}
