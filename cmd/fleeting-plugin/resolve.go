package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// newResolveCmd shows what a reference stands for.
func newResolveCmd(app *cli.App) *cobra.Command {
	var explain bool
	cmd := &cobra.Command{
		Use:   "resolve REF...",
		Short: "Show the version and the digests that a reference stands for",
		Long: `Show the version and the digests that a reference stands for now. Nothing is
verified, downloaded or changed.`,
		Example: `  fleeting-plugin resolve registry.example.com/team/plugin:1
  fleeting-plugin resolve --explain --platform linux/arm/v7 'registry.example.com/team/plugin:>=1.2 <2'`,
		Args: cli.Args(1, -1),
	}
	flags := newInstallFlags(app, cmd)
	cmd.Flags().BoolVar(&explain, "explain", false, "say why this version and this platform")
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
		var resolved []installer.Resolution
		err = each(cmd.Context(), refs, func(ref installer.Reference) error {
			r, err := i.Resolve(cmd.Context(), ref)
			if err == nil {
				resolved = append(resolved, r)
			}
			return err
		})
		if len(resolved) == 0 {
			return err
		}
		if printErr := app.Print(resolved, func(w io.Writer) error { return writeResolutions(w, resolved, explain) }); printErr != nil {
			return printErr
		}
		return err
	})
	return cmd
}

func writeResolutions(w io.Writer, resolved []installer.Resolution, explain bool) error {
	for _, r := range resolved {
		plaintext.Fprintf(w, "%s\n  version   %s\n  digest    %s\n  platform  %s\n  manifest  %s\n  layer     %s (%d bytes)\n",
			r.Reference, r.Version, r.Digest(), r.Platform, r.Manifest, r.Layer, r.Size)
		if !explain {
			continue
		}
		for _, sentence := range r.Explanation {
			plaintext.Fprintf(w, "  %s\n", sentence)
		}
	}
	return nil
}
