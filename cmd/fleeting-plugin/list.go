package main

import (
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
		Long: `Show the installed plugins. "latest" marks what the runner takes when it is asked
for the latest version. Versions without a receipt were put there by something
else: the runner takes them, and nothing is known about them.`,
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
		marked := markLatest(list)
		var rows [][]string
		for _, one := range marked {
			latest := ""
			if one.Latest {
				latest = "latest"
			}
			r := one.Receipt
			rows = append(rows, []string{r.Name, r.Version.String(), latest, r.Platform, signerColumn(one.Installed), one.Dir})
		}
		return app.PrintTable(marked, []string{"plugin", "version", "runner", "platform", "signer", "folder"}, rows, nothingIn(folder))
	}
	return cmd
}

// nothingIn says that nothing is installed, and where it was looked for.
func nothingIn(folder *installer.Folder) string { return "nothing is installed in " + folder.Dir() }

// markLatest marks the greatest release of each plugin; the list is sorted by
// name and version.
func markLatest(list []installer.Installed) []listed {
	marked := make([]listed, 0, len(list))
	latest := map[string]int{}
	for n, one := range list {
		marked = append(marked, listed{Installed: one})
		if !one.Receipt.Version.IsPrerelease() {
			latest[one.Receipt.Name] = n
		}
	}
	for _, n := range latest {
		marked[n].Latest = true
	}
	return marked
}
