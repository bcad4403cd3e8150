package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// newResolveCmd shows what a reference stands for.
func newResolveCmd(app *cli.App) *cobra.Command {
	var explain bool
	cmd := &cobra.Command{
		Use:   "resolve REF...",
		Short: "Show the version and the digests that a reference resolves to",
		Long: `Show the version and the digests that a reference resolves to now. Nothing is
verified, downloaded or changed.`,
		Example: `  fleeting-plugin resolve registry.example.com/team/plugin:1
  fleeting-plugin resolve --explain --platform linux/arm/v7 'registry.example.com/team/plugin:>=1.2 <2'`,
		Args: cli.Args(1, -1),
	}
	flags := newInstallFlags(app, cmd)
	cmd.Flags().BoolVar(&explain, "explain", false, "explain the choice of version and platform")
	cmd.RunE = flags.closing(func(cmd *cobra.Command, args []string) error {
		refs, err := parseReferences(args)
		if err != nil {
			return err
		}
		// Resolving trusts nothing, so it needs no policy.
		i, err := flags.withPolicy(cmd.Context(), installer.Policy{})
		if err != nil {
			return err
		}
		resolved, err := together(cmd.Context(), refs, func(ref installer.Reference) (installer.Resolution, error) {
			return i.Resolve(cmd.Context(), ref)
		})
		if len(resolved) == 0 {
			return err
		}
		if printErr := app.Print(resolved, func(p *cli.Page) { writeResolutions(p, resolved, explain) }); printErr != nil {
			return printErr
		}
		return err
	})
	return cmd
}

func writeResolutions(p *cli.Page, resolved []installer.Resolution, explain bool) {
	for _, r := range resolved {
		p.Printf("%s\n", r.Reference)
		for _, f := range []struct{ label, value string }{
			{"version", r.Version.String()},
			{"digest", r.Digest().String()},
			{"platform", r.Platform},
			{"manifest", r.Manifest.String()},
			{"layer", fmt.Sprintf("%s (%d bytes)", r.Layer, r.Size)},
		} {
			p.Field(12, "  "+f.label, f.value)
		}
		if !explain {
			continue
		}
		for _, sentence := range r.Explanation {
			p.Printf("  %s\n", sentence)
		}
	}
}
