// Command fleeting-plugin-acme lets GitLab Runner create and delete servers at
// Acme. The runner starts it with no arguments.
package main

import "gitlab.com/gitlab-org/fleeting/fleeting/plugin"

// Set by the linker, see the Makefile.
//
//nolint:gochecknoglobals // the linker can set package variables only
var version, revision string

func main() {
	plugin.Main(&Group{}, plugin.VersionInfo{Name: "fleeting-plugin-acme", Version: version, Revision: revision})
}
