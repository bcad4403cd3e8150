package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// installCmd has the flags of install.
type installCmd struct {
	app              *cli.App
	flags            *installFlags
	opts             installer.InstallOptions
	config, lockFile string
	locked, offline  bool
}

// newInstallCmd resolves, verifies and installs.
func newInstallCmd(app *cli.App) *cobra.Command {
	c := &installCmd{app: app}
	cmd := &cobra.Command{
		Use:   "install [REF...]",
		Short: "Resolve, verify and install plugins",
		Long: `Resolve references, verify them against the policy, and install the plugins where
the runner looks for them. An installed plugin stays if it is what was verified.
It is downloaded again only if no signed digest says what its files are.

Without REF, install every plugin that the runner's configuration names. Local
paths and bare names in it are skipped.

The runner uses the greatest installed version that satisfies its reference. If
another program installed that version, nothing is installed.

--locked installs exactly what the lock has, and removes greater versions that
satisfy the reference. If the runner's configuration needs one of those versions
for another reference, nothing is removed or installed. --from takes plugins from
a mirror on disk. --offline uses no network and fails if a plugin is not installed.`,
		Example: `  fleeting-plugin install registry.example.com/team/plugin:1.2
  fleeting-plugin install --key cosign.pub registry.example.com/team/plugin:1
  fleeting-plugin install --locked --config /etc/gitlab-runner/config.toml
  fleeting-plugin install --from mirror.tar registry.example.com/team/plugin:1
  fleeting-plugin install --as registry.example.com/team/plugin registry.example.com:5050/team/plugin:1`,
		Args: cli.Args(0, -1),
	}
	c.flags = newInstallFlags(app, cmd)
	cmd.Flags().StringVar(&c.opts.As, "as", "", "install under this `NAME`, for registries that the runner cannot name")
	cmd.Flags().BoolVar(&c.opts.Reinstall, "reinstall", false, "replace what is installed, even if it is the same")
	cmd.Flags().StringVar(&c.config, "config", "", "install every plugin that this runner configuration `FILE` names (default where the runner has it)")
	cmd.Flags().BoolVar(&c.locked, "locked", false, "install exactly what the lock has")
	cmd.Flags().StringVar(&c.lockFile, "lock", "", "lock `FILE` (default "+lockName+" beside the configuration)")
	cmd.Flags().BoolVar(&c.offline, "offline", false, "use no network")
	cmd.RunE = c.flags.closing(func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) })
	return cmd
}

func (c *installCmd) run(ctx context.Context, args []string) error {
	switch {
	case c.opts.As != "" && len(args) != 1:
		return cli.Usagef("--as is for one REF")
	case c.opts.As != "" && c.locked:
		return cli.Usagef("the lock has the name to install under; --as is for fleeting-plugin lock")
	}
	refs, err := wanted(c.app, args, c.config)
	switch {
	case errors.Is(err, errLocalOnly):
		return c.app.Print([]installer.Installed{}, func(*cli.Page) {})
	case err != nil:
		return err
	}
	extra := []installer.Option{showing(c.app)}
	if c.offline && c.flags.from == "" {
		extra = append(extra, installer.WithSource(nowhere))
	}
	if c.locked {
		// Versions may have to go: those that others of the configuration need stay.
		others, err := referenced(c.app, c.config)
		if err != nil {
			return err
		}
		extra = append(extra, installer.WithReferenced(others...))
	}
	i, err := c.flags.installer(ctx, extra...)
	if err != nil {
		return err
	}
	if c.locked {
		lock, err := readLock(placeOf(c.app, c.config).lock(c.lockFile), false)
		if err != nil {
			return err
		}
		return installLocked(ctx, c.app, i, lock, refs)
	}
	return c.install(ctx, i, refs)
}

// errOffline is why nothing is fetched.
var errOffline = errors.New("not installed, and --offline allows no network")

func nowhere(context.Context, installer.Reference) (installer.Source, error) {
	return nil, cli.Hint(cli.WithCode(errOffline, cli.NotFound), "fetch it from a mirror on disk: --from mirror.tar")
}

func (c *installCmd) install(ctx context.Context, i *installer.Installer, refs []installer.Reference) error {
	do := i.Install
	if c.offline && c.flags.from == "" {
		do = i.Ensure
	}
	return installAll(ctx, c.app, refs, func(ref installer.Reference) (installer.Installed, error) {
		return do(ctx, ref, c.opts)
	})
}

// installAll installs plugins side by side, and prints what is installed.
func installAll(ctx context.Context, app *cli.App, refs []installer.Reference, do func(installer.Reference) (installer.Installed, error)) error {
	groups, err := together(ctx, byPlugin(refs), func(refs []installer.Reference) (partly, error) {
		var done partly
		for _, ref := range refs {
			one, err := do(ref)
			if err != nil {
				done.problems = append(done.problems, err)
				continue
			}
			done.installed = append(done.installed, one)
		}
		return done, nil
	})
	installed, problems := []installer.Installed{}, []error{}
	for _, group := range groups {
		installed, problems = append(installed, group.installed...), append(problems, group.problems...)
	}
	if err == nil && len(problems) == 1 {
		err = problems[0]
	} else {
		err = errors.Join(append(problems, err)...)
	}
	if err != nil && len(installed) == 0 {
		return err
	}
	return errors.Join(app.Print(installed, func(p *cli.Page) { writeInstalled(p, installed) }), err)
}

// partly is what came of the references of one plugin.
type partly struct {
	installed []installer.Installed
	problems  []error
}

func writeInstalled(p *cli.Page, installed []installer.Installed) {
	for _, one := range installed {
		verb := "already installed"
		if one.JustInstalled {
			verb = "installed"
		}
		p.Printf("%s %s %s for %s\n  %s\n  %s\n", verb, one.Receipt.Name, one.Receipt.Version, one.Receipt.Platform,
			one.Path, signedBy(one.Receipt.Verification))
	}
}

// signedBy says in a line why something was allowed.
func signedBy(v installer.Verification) string {
	if v.Unsafe {
		return "NOT VERIFIED, by demand"
	}
	return "signed by " + strings.Join(v.Signers(), ", ")
}

// errLocalOnly is no failure for whoever wants to have installed what is named.
var errLocalOnly = errors.New("the configuration names plugins of this machine only")

// wanted gives the references of a command line, else those of the runner's
// configuration.
func wanted(app *cli.App, args []string, config string) ([]installer.Reference, error) {
	if len(args) > 0 {
		if config != "" {
			return nil, cli.Usagef("either REF or --config")
		}
		return parseReferences(args)
	}
	plugins, err := readConfig(app, config, "name a REF, or the runner's configuration with --config")
	if err != nil {
		return nil, err
	}
	for _, p := range plugins {
		if p.Local {
			app.Statusf("runner %q uses %s of this machine; nothing to install", p.Runner, p.Text)
		}
	}
	refs := installer.References(plugins)
	switch {
	case len(refs) == 0 && len(plugins) > 0:
		return nil, cli.Hint(cli.WithCode(errLocalOnly, cli.NotFound), "name a REF")
	case len(refs) == 0:
		return nil, cli.Hint(cli.WithCode(errors.New("the configuration names no plugin to install"), cli.NotFound),
			"set plugin in [runners.autoscaler], or name a REF")
	}
	return refs, nil
}

// showing shows what the installer does, and how far its transfers are.
func showing(app *cli.App) installer.Option {
	return installer.WithEvents(func(e installer.Event) {
		switch e.Step {
		case installer.StepDownloading, installer.StepCopying:
			app.Progress(string(e.Step), e.Reference.Name()+" "+e.Version.String(), e.Done, e.Total)
		case installer.StepResolved, installer.StepVerified, installer.StepInstalled:
			app.Logger().Debug("installing", "step", string(e.Step), "reference", e.Reference.String(), "version", e.Version.String())
		}
	})
}
