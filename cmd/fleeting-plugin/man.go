package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/docgen"
)

// newManCmd writes the manual page, for packages; people read it with man.
func newManCmd(app *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:    "man",
		Short:  "Write the manual page",
		Args:   cli.Args(0, 0),
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(app.Out, docgen.Man(cmd.Root()))
			return err
		},
	}
}
