package main

import (
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// Set by the linker: -X main.version=1.2.3 -X main.revision=COMMIT.
//
//nolint:gochecknoglobals // the linker can set package variables only
var version, revision string

// newVersionCmd prints what was built, from what.
func newVersionCmd(app *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this tool",
		Args:  cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := cli.NewVersion(cmd.Root().Name(), version, revision)
			return app.Print(v, func(p *cli.Page) {
				p.Printf("%s %s\nrevision: %s\ngo: %s\nplatform: %s\n", v.Name, v.Version, v.Revision, v.Go, v.Platform)
			})
		},
	}
}
