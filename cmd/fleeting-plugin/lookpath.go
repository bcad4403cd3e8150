package main

import (
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// newLookpathCmd prints the path of an installed plugin.
func newLookpathCmd(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lookpath REF",
		Short: "Print the path of the installed plugin that a reference resolves to",
		Long: `Print the path of the installed executable that a reference resolves to: the
greatest installed version that satisfies it. Versions that another program
installed are skipped. No network is used.`,
		Example: `  fleeting-plugin lookpath registry.example.com/team/plugin:1`,
		Args:    cli.Args(1, 1),
	}
	flags := newFolderFlags(app, cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		ref, err := installer.ParseReference(args[0])
		if err != nil {
			return err
		}
		folder, err := flags.folder()
		if err != nil {
			return err
		}
		found, err := folder.Find(ref)
		if err != nil {
			return err
		}
		return app.Print(found, func(p *cli.Page) { p.Command("", found.Path) })
	}
	return cmd
}
