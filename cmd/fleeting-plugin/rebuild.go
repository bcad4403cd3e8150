package main

import (
	"context"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/rebuild"
)

// newRebuildCmd builds what is published again.
func newRebuildCmd(app *cli.App) *cobra.Command {
	request := rebuild.Request{Status: app.Statusf, Warn: app.Warnf}
	cmd := &cobra.Command{
		Use:   "rebuild REF",
		Short: "Build a published plugin again from its source, and compare",
		Long: `Build what REF resolves to again, for every platform, and compare the result with
what is published: first the executables byte by byte, then the artifact's digest.

REF and its SLSA provenance, which names the repository and the commit, are
verified against the policy first. The repository is cloned over https, unless
--source names a checkout. The build repeats what a Go executable records: Go
version, build tags, processor settings.

go build downloads the modules of go.sum and runs no code of the source. cgo is
off, go.mod is not changed, and the installed Go version is used; --allow-cgo and
--download-toolchain change that. --command runs a command, and with it anything
that the source makes of it, with all your rights.

The source is built in a copy without repositories: no filter, hook, submodule or
configuration of a checkout is used. Packages outside of the source, and assembler
that includes files outside of its package, are refused. Links that point out of
the source are omitted and named. Builds and --command get only the variables that
they need.

Files beside an executable are not built. They are taken from what is published,
and named. So are objects (.syso) in the source that are linked in.

Exit code 0 means that everything that was built is the same, 1 that something
differs. With any other code nothing is known: 2 that it could not be built here
or that no source is named, 3 that the policy refused it, 4 that the repository
does not have the commit, and 5 that the registry or repository did not answer.`,
		Example: `  fleeting-plugin rebuild registry.example.com/team/plugin:1.2.3
  fleeting-plugin rebuild registry.example.com/team/plugin:1.2.3 --source . --platform linux/amd64`,
		Args: cli.Args(1, 1),
	}
	flags := newFetchFlags(app, cmd)
	request.Installer = func(ctx context.Context, policy installer.Policy, platform, dir string) (*installer.Installer, error) {
		flags.platform, flags.dir = platform, dir
		return flags.withPolicy(ctx, policy)
	}
	mapRebuildErrors(app)
	cmd.Flags().StringVar(&request.Source, "source", "", "build from the checkout in `DIR`, in place of a clone of the repository that the provenance names")
	cmd.Flags().StringSliceVar(&request.Platforms, "platform", nil, "build only for this `PLATFORM`, such as linux/arm64 (repeatable; default: all)")
	cmd.Flags().StringVar(&request.Keep, "keep", "", "keep what was built in `DIR`, as os/arch/plugin")
	cmd.Flags().StringVar(&request.Options.LDFlags, "ldflags", "", "-ldflags `FLAGS` of the go command (default: those that executable or provenance say)")
	cmd.Flags().StringVar(&request.Options.Command, "command", "", "build with this shell `COMMAND`, which writes to $OUTPUT; it gets VERSION, REVISION, PLATFORM, GOOS, GOARCH and GOARM")
	cmd.Flags().BoolVar(&request.Options.AllowCgo, "allow-cgo", false, "build with cgo what was built with it: runs the C compiler with flags of the source")
	cmd.Flags().BoolVar(&request.Options.DownloadToolchain, "download-toolchain", false, "let the go command download the Go version that was used")
	cmd.RunE = flags.closing(func(cmd *cobra.Command, args []string) error {
		ref, err := installer.ParseReference(args[0])
		if err != nil {
			return err
		}
		request.Reference = ref
		if request.Policy, err = flags.policy(); err != nil {
			return err
		}
		report, err := rebuild.Run(cmd.Context(), request)
		if err != nil {
			return err
		}
		if err := app.Print(report, func(p *cli.Page) { writeRebuilt(p, report) }); err != nil {
			return err
		}
		return report.Verdict()
	})
	return cmd
}

// mapRebuildErrors says what to do about failures of rebuild.
func mapRebuildErrors(app *cli.App) {
	mapPackagerErrors(app)
	app.MapError(exec.ErrNotFound, cli.Usage, "install git, or give the source: --source DIR")
	app.MapError(rebuild.ErrOrigin, cli.Usage, "give the source: --source DIR")
	app.MapError(rebuild.ErrFetch, cli.Network, "try again, or give a checkout: --source DIR")
	app.MapError(rebuild.ErrNoCommit, cli.NotFound, "ask the publisher where the source is, or give a checkout: --source DIR")
	app.MapError(rebuild.ErrTooLarge, cli.Usage, "give a checkout of nothing but the source: --source DIR")
	app.MapError(artifact.ErrPlatform, cli.Usage, "")
	app.MapError(rebuild.ErrCheckout, cli.Usage, "name the folder of a checkout: --source DIR")
	app.MapError(rebuild.ErrUnknownFlags, cli.Failed, "ask the publisher for the -ldflags, and pass them with --ldflags; the publisher can record them for all: fleeting-plugin attest REF --ldflags FLAGS, by the same signer")
	app.MapError(rebuild.ErrDiffers, cli.Failed, "--keep DIR keeps what was built, to look at both")
	app.MapError(rebuild.ErrNotBuilt, cli.Usage, "the table says why; --source, --ldflags, --allow-cgo, --download-toolchain and --command change how it is built")
}
