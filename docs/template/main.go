// Command fleeting-plugin-acme lets GitLab Runner create and delete servers at
// Acme. The runner starts it with no arguments.
package main

import (
	"os/signal"
	"syscall"

	"gitlab.com/gitlab-org/fleeting/fleeting/plugin"
)

// Set by the linker, see the Makefile.
//
//nolint:gochecknoglobals // the linker can set package variables only
var version, revision string

func main() {
	// The runner ends its plugins. Signals are about the runner: dumb-init, in its
	// image, sends them to all of its process group.
	signal.Ignore(syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTERM)
	plugin.Main(&Group{}, plugin.VersionInfo{Name: "fleeting-plugin-acme", Version: version, Revision: revision})
}
