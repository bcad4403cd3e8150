// Command fleeting-plugin-acme lets GitLab Runner create and delete servers at
// Acme. The runner starts it with no arguments.
package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

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
	// But one that was killed ends nothing any more.
	runner, look := os.Getppid(), time.NewTicker(2*time.Second)
	go func() {
		for range look.C {
			if os.Getppid() != runner {
				os.Exit(1)
			}
		}
	}()
	plugin.Main(&Group{}, plugin.VersionInfo{Name: "fleeting-plugin-acme", Version: version, Revision: revision})
}
