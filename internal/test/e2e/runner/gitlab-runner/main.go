// Command gitlab-runner is GitLab Runner as far as our tests need it and its
// module can be had: the runner's own code for its configuration, its talk with
// GitLab, `fleeting`, the instance executor with its autoscaler, and the shell's
// scripts, under a main function of ours.
//
// The module around it pins the runner and, in place of what the Go module proxy
// does not serve of it: the last fleeting, taskscaler, nesting and metrics that it
// does serve, all of them older, and the folders of absent, which say that
// something is not built in: job inputs, jobs that are made of steps, billing
// events, and the wrapper's control. It is not the runner that GitLab publishes.
//
// The module's own tests name packages that are not there either, so it is
// brought up to date with `go mod tidy -e`.
package main

import (
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"
	"github.com/urfave/cli"
	"gitlab.com/gitlab-org/gitlab-runner/commands"
	"gitlab.com/gitlab-org/gitlab-runner/commands/fleeting"
	"gitlab.com/gitlab-org/gitlab-runner/common"
	"gitlab.com/gitlab-org/gitlab-runner/executors"
	"gitlab.com/gitlab-org/gitlab-runner/executors/instance"
	"gitlab.com/gitlab-org/gitlab-runner/log"
	"gitlab.com/gitlab-org/gitlab-runner/network"
	_ "gitlab.com/gitlab-org/gitlab-runner/shells" // bash
)

func main() {
	providers := executors.NewProviderRegistry(map[string]common.ExecutorProvider{
		"instance": instance.NewProvider("gitlab-runner"),
	})
	requests := network.NewAPIRequestsCollector()
	gitlab := network.NewGitLabClient(
		network.WithAPIRequestsCollector(requests),
		network.WithCertificateDirectory(commands.GetDefaultCertificateDirectory()),
		network.WithExecutorProviderFunc(providers.GetByName),
	)
	app := cli.NewApp()
	app.Name = filepath.Base(os.Args[0])
	app.Usage = "GitLab Runner, of its module, with the instance executor only"
	app.Version = common.AppVersion.ShortLine()
	app.Commands = []cli.Command{
		commands.NewListCommand(),
		commands.NewRegisterCommand(gitlab, providers),
		commands.NewRunCommand(gitlab, requests, providers),
		commands.NewUnregisterCommand(gitlab),
		commands.NewVerifyCommand(gitlab),
		fleeting.NewCommand(),
	}
	log.ConfigureLogging(app)
	if err := app.Run(os.Args); err != nil {
		logrus.Fatal(err)
	}
}
