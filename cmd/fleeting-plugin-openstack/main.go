// Command fleeting-plugin-openstack lets GitLab Runner create and delete
// servers on OpenStack. The runner starts it with no arguments.
package main

import (
	"os"

	fleetingplugin "gitlab.com/gitlab-org/fleeting/fleeting/plugin"

	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// Set by the linker: -X main.version=1.2.3 -X main.revision=COMMIT.
//
//nolint:gochecknoglobals // the linker can set package variables only
var version, revision string

func main() {
	if len(os.Args) > 1 && os.Args[1] == "bootstrap" {
		os.Exit(bootstrap(os.Args[2:], os.Getenv, os.Stdout, os.Stderr))
	}
	fleetingplugin.Main(plugin.New(plugin.WithVersion(version, revision)), plugin.VersionInfo(version, revision))
}
