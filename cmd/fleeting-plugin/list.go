package main

import (
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// newListCmd shows what is installed.
func newListCmd(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the installed plugins",
		Long: `Show the installed plugins. Versions without a receipt were put there by
something else: the runner takes them, and nothing is known about them.`,
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
		var rows [][]string
		for _, installed := range list {
			r := installed.Receipt
			rows = append(rows, []string{r.Name, r.Version.String(), r.Platform, signerColumn(installed), installed.Dir})
		}
		return app.PrintTable(list, []string{"plugin", "version", "platform", "signer", "folder"}, rows)
	}
	return cmd
}
