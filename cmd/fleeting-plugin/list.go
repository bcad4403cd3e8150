package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// listed is an installed version, and whether the runner takes it for latest.
type listed struct {
	installer.Installed
	Latest bool `json:"latest"`
}

// newListCmd shows what is installed.
func newListCmd(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the installed plugins",
		Long: `Show the installed plugins. "latest" marks the version that the runner uses if it
is asked for the latest. Versions without a receipt were installed by another
program: the runner uses them, but nothing is known about them.

--output json has the folder of each version. lookpath prints the path of an
executable.`,
	}
	flags := newFolderFlags(app, cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		folder, err := flags.folder()
		if err != nil {
			return err
		}
		list, err := folder.List()
		if err != nil {
			return err
		}
		marked, err := markLatest(folder, list)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, one := range marked {
			latest := ""
			if one.Latest {
				latest = "latest"
			}
			r := one.Receipt
			rows = append(rows, []string{r.Name, r.Version.String(), latest, r.Platform, signerColumn(one.Installed)})
		}
		return app.PrintTable(marked, []string{"plugin", "version", "runner", "platform", "signer"}, rows, nothingIn(folder))
	}
	return cmd
}

// nothingIn says that nothing is installed, and where it was looked for.
func nothingIn(folder *installer.Folder) string { return "nothing is installed in " + folder.Dir() }

// markLatest marks what the runner takes of each plugin when it is asked for the
// latest.
func markLatest(folder *installer.Folder, list []installer.Installed) ([]listed, error) {
	marked := make([]listed, 0, len(list))
	latest := map[string]string{}
	for _, one := range list {
		name := one.Receipt.Name
		if _, ok := latest[name]; !ok {
			dir, err := latestDir(folder, name)
			if err != nil {
				return nil, err
			}
			latest[name] = dir
		}
		marked = append(marked, listed{Installed: one, Latest: one.Dir == latest[name]})
	}
	return marked, nil
}

// latestDir is the folder that the runner takes for the latest version of a
// plugin, empty if it takes none.
func latestDir(folder *installer.Folder, name string) (string, error) {
	ref, err := installer.ParseReference(name)
	if err != nil {
		return "", nil //nolint:nilerr // a folder with a name that no reference has
	}
	taken, err := folder.RunnerTakes(ref)
	if errors.Is(err, installer.Reason("not-installed")) {
		return "", nil
	}
	return taken.Dir, err
}
