package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// newUninstallCmd removes an installed version.
func newUninstallCmd(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "uninstall REF...",
		Short: "Remove installed versions of plugins",
		Long: `Remove, for each reference, the installed version that it resolves to. To remove a
version that another program installed, name exactly that version. Warn of
references in the runner's configuration that match no installed version then.`,
		Example: `  fleeting-plugin uninstall registry.example.com/team/plugin:1.2.3`,
		Args:    cli.Args(1, -1),
	}
	flags := newFolderFlags(app, cmd)
	config := cmd.Flags().String("config", "", "runner configuration `FILE` that may need what is removed (default where the runner has it)")
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
		others, err := referenced(app, *config)
		switch {
		case err != nil && *config != "":
			return err
		case err != nil:
			app.Warnf("cannot tell whether the runner's configuration needs it: %v", err)
		}
		before := served(folder, others)
		err = each(cmd.Context(), refs, func(ref installer.Reference) error {
			one, err := folder.Uninstall(cmd.Context(), ref)
			if err == nil {
				removed = append(removed, one)
			}
			return err
		})
		after := served(folder, others)
		for _, ref := range others {
			if before[ref.String()] && !after[ref.String()] {
				app.Warnf("%s of the configuration matches no installed version now", ref)
			}
		}
		if err != nil && len(removed) == 0 {
			return err
		}
		return errors.Join(app.Print(removed, func(p *cli.Page) { writeRemoved(p, "removed", removed) }), err)
	}
	return cmd
}

// served says for which references the runner finds something in the folder.
func served(folder *installer.Folder, refs []installer.Reference) map[string]bool {
	found := map[string]bool{}
	for _, ref := range refs {
		_, err := folder.RunnerTakes(ref)
		found[ref.String()] = err == nil
	}
	return found
}
