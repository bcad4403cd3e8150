package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// newUninstallCmd removes an installed version.
func newUninstallCmd(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "uninstall REF...",
		Short: "Remove installed versions of plugins",
		Long: `Remove, for each reference, the installed version that it stands for. Name the
exact version to remove one that something else installed.`,
		Example: `  fleeting-plugin uninstall registry.example.com/team/plugin:1.2.3`,
		Args:    cobra.MinimumNArgs(1),
	}
	flags := newFolderFlags(app, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		refs, err := parseReferences(args)
		if err != nil {
			return err
		}
		folder, err := flags.folder()
		if err != nil {
			return err
		}
		var removed []installer.Installed
		err = each(cmd.Context(), refs, func(ref installer.Reference) error {
			one, err := folder.Uninstall(cmd.Context(), ref)
			if err == nil {
				removed = append(removed, one)
			}
			return err
		})
		if err != nil && len(removed) == 0 {
			return err
		}
		return errors.Join(app.Print(removed, func(w io.Writer) error { return writeRemoved(w, "removed", removed) }), err)
	}
	return cmd
}
