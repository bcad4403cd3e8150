package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// newUpgradeCmd installs what the references of installed plugins stand for now.
func newUpgradeCmd(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade [REF...]",
		Short: "Install what the references of installed plugins resolve to now",
		Long: `For each installed plugin, or for each REF, install what the reference that it came
from resolves to now. Older versions stay until you prune them.

With --allow-downgrade newer versions are removed, because the runner would use
them, unless its configuration needs them for another reference. A running runner
keeps the version that it has started.`,
		Example: `  fleeting-plugin upgrade
  fleeting-plugin upgrade registry.example.com/team/plugin`,
		Args: cli.Args(0, -1),
	}
	flags := newInstallFlags(app, cmd)
	opts := changeFlags(cmd)
	config := neededFlag(cmd)
	cmd.RunE = flags.closing(func(cmd *cobra.Command, args []string) error {
		var others []installer.Reference
		if opts.AllowDowngrade { // else nothing is removed
			var err error
			if others, err = referenced(app, *config); err != nil {
				return err
			}
		}
		i, err := flags.installer(cmd.Context(), showing(app), installer.WithReferenced(others...))
		if err != nil {
			return err
		}
		newest, err := selected(i.Folder(), args)
		if err != nil {
			return err
		}
		upgraded, err := together(cmd.Context(), newest, func(from installer.Installed) (installer.Installed, error) {
			return i.Upgrade(cmd.Context(), from, *opts)
		})
		if err != nil && len(upgraded) == 0 {
			return err
		}
		if len(upgraded) == 0 {
			app.Statusf("%s", nothingIn(i.Folder()))
		}
		return errors.Join(app.Print(upgraded, func(p *cli.Page) { writeInstalled(p, upgraded) }), err)
	})
	return cmd
}

// neededFlag names the configuration whose plugins must stay.
func neededFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("config", "", "runner configuration `FILE` that names what must stay (default where the runner has it)")
}

// selected gives the newest installed version of the plugins that are named, or
// of all.
func selected(folder *installer.Folder, args []string) ([]installer.Installed, error) {
	if len(args) == 0 {
		return folder.Newest()
	}
	refs, err := parseReferences(args)
	if err != nil {
		return nil, err
	}
	var out []installer.Installed
	for _, ref := range refs {
		one, err := folder.Find(ref)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// newOutdatedCmd shows what could be upgraded.
func newOutdatedCmd(app *cli.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "outdated [REF...]",
		Short: "Show which installed plugins have newer versions",
		Long: `Show the installed plugins for which the registry has a newer version.

WANTED is the version that the plugin's reference resolves to now: upgrade
installs it. LATEST is the newest release, whatever the reference allows. If only
LATEST is newer, the reference holds the plugin back: change it in the runner's
configuration. Nothing is verified or changed.`,
		Args: cli.Args(0, -1),
	}
	flags := newInstallFlags(app, cmd)
	cmd.Flags().BoolVar(&all, "all", false, "show plugins that are up to date, too")
	cmd.RunE = flags.closing(func(cmd *cobra.Command, args []string) error {
		i, err := flags.withPolicy(cmd.Context(), installer.Policy{})
		if err != nil {
			return err
		}
		newest, err := selected(i.Folder(), args)
		if err != nil {
			return err
		}
		found, err := together(cmd.Context(), newest, func(one installer.Installed) (installer.Outdated, error) {
			return i.Outdated(cmd.Context(), one)
		})
		found = slices.DeleteFunc(found, func(o installer.Outdated) bool { return !all && !o.Upgradable && !o.IsHeldBack() })
		none := ""
		if err == nil {
			none = upToDate(i.Folder(), newest)
		}
		return errors.Join(printOutdated(app, found, none), err)
	})
	return cmd
}

func printOutdated(app *cli.App, found []installer.Outdated, none string) error {
	var rows [][]string
	var held []string
	for _, o := range found {
		r := o.Installed.Receipt
		rows = append(rows, []string{r.Name, r.Version.String(), o.Wanted.String(), latest(o), r.Reference.String()})
		if o.IsHeldBack() && !o.Upgradable {
			held = append(held, r.Reference.String())
		}
	}
	if err := app.PrintTable(found, []string{"plugin", "installed", "wanted", "latest", "reference"}, rows, none); err != nil {
		return err
	}
	if len(held) > 0 && app.Output == cli.Text {
		app.Statusf("%s", "upgrade does not install the latest release, because the reference does not allow it: "+strings.Join(held, ", "))
	}
	return nil
}

// latest is the newest release, or that there is none.
func latest(o installer.Outdated) string {
	if o.Latest == nil {
		return "none"
	}
	return o.Latest.String()
}

// upToDate says why nothing is outdated.
func upToDate(folder *installer.Folder, looked []installer.Installed) string {
	switch len(looked) {
	case 0:
		return nothingIn(folder)
	case 1:
		return looked[0].Receipt.Name + " is up to date"
	}
	return fmt.Sprintf("%d plugins are up to date", len(looked))
}

// newRollbackCmd goes back to the version before.
func newRollbackCmd(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback REF",
		Short: "Remove the newest installed version, so that the runner uses the one before",
		Long: `Remove the installed version that a reference resolves to. This requires an older
installed version that satisfies the reference and is unchanged, and that nothing
else in the runner's configuration needs the newer one. The runner uses the older
version when it starts next. No network is used; a lock is not changed.`,
		Example: `  fleeting-plugin rollback registry.example.com/team/plugin:1`,
		Args:    cli.Args(1, 1),
	}
	flags := newFolderFlags(app, cmd)
	config := neededFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref, err := installer.ParseReference(args[0])
		if err != nil {
			return err
		}
		others, err := referenced(app, *config)
		if err != nil {
			return err
		}
		folder, err := flags.folder()
		if err != nil {
			return err
		}
		removed, left, err := folder.Rollback(cmd.Context(), ref, others...)
		if err != nil {
			return err
		}
		return app.Print(map[string]installer.Installed{"removed": removed, "left": left}, func(p *cli.Page) {
			p.Printf("removed %s %s\n%s is %s now\n", removed.Receipt.Name, removed.Receipt.Version, ref, left.Receipt.Version)
		})
	}
	return cmd
}

// newPruneCmd removes old versions.
func newPruneCmd(app *cli.App) *cobra.Command {
	var opts installer.PruneOptions
	var lock string
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove old versions, and what killed installations left behind",
		Long: `Remove old versions of plugins, except the newest of each, what the runner's
configuration names, what the lock has, and what something else installed.`,
		Example: `  fleeting-plugin prune --keep 2 --config /etc/gitlab-runner/config.toml --dry-run`,
	}
	flags := newFolderFlags(app, cmd)
	cmd.Flags().IntVar(&opts.Keep, "keep", 2, "keep the newest `N` versions of each plugin")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "say what would be removed, remove nothing")
	config := neededFlag(cmd)
	cmd.Flags().StringVar(&lock, "lock", "", "lock `FILE` that names what must stay (default "+lockName+" beside the configuration)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if opts.Keep < 1 {
			return cli.Usagef("--keep %d: the newest version of each plugin stays in any case, so at least 1", opts.Keep)
		}
		plugins, err := readConfig(app, *config, "name the runner's configuration, so that nothing it needs is removed: --config FILE")
		if err != nil {
			return err
		}
		opts.Referenced = installer.References(plugins)
		// A lock that somebody names must be there: a misspelt one would name nothing.
		if opts.Locked, err = readLock(placeOf(app, *config).lock(lock), lock == ""); err != nil {
			return err
		}
		folder, err := flags.folder()
		if err != nil {
			return err
		}
		removed, err := folder.Prune(cmd.Context(), opts)
		if err != nil && len(removed) == 0 {
			return err
		}
		if len(removed) == 0 {
			app.Statusf("nothing to remove in %s", folder.Dir())
		}
		verb := "removed"
		if opts.DryRun {
			verb = "would remove"
		}
		return errors.Join(app.Print(removed, func(p *cli.Page) { writeRemoved(p, verb, removed) }), err)
	}
	return cmd
}

func writeRemoved(p *cli.Page, verb string, removed []installer.Installed) {
	for _, one := range removed {
		p.Printf("%s %s %s\n", verb, one.Receipt.Name, one.Receipt.Version)
	}
}
