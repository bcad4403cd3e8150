// Command fleeting-plugin-openstack lets GitLab Runner create and delete
// servers on OpenStack. The runner starts it with no arguments.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	fleetingplugin "gitlab.com/gitlab-org/fleeting/fleeting/plugin"

	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// Set by the linker: -X main.version=1.2.3 -X main.revision=COMMIT.
//
//nolint:gochecknoglobals // the linker can set package variables only
var version, revision string

// runnersMark is the variable with which a runner starts a plugin; fleeting's
// library does not serve without it.
const runnersMark = "FLEETING_INSTANCE_GROUP_PLUGIN"

func main() {
	build := plugin.WithVersion(version, revision)
	switch args := os.Args[1:]; {
	case isForPeople(args):
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := runForPeople(ctx, args, os.Stdout, os.Stderr, build)
		stop()
		os.Exit(code)
	case (len(args) == 0 || args[0] == "serve") && os.Getenv(runnersMark) == "":
		usage(os.Stderr)
		os.Exit(exitUsage)
	default:
		endWithRunner(func() { os.Exit(exitFailed) })
		fleetingplugin.Main(plugin.New(build), plugin.VersionInfo(version, revision))
	}
}
