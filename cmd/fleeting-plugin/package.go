package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// newPackageCmd turns executables into an OCI layout.
func newPackageCmd(app *cli.App) *cobra.Command {
	var layout, version string
	cmd := &cobra.Command{
		Use:   "package DIR",
		Short: "Package executables as an OCI layout",
		Long: `Package the executables below DIR, one per platform, as an OCI image layout.

DIR holds os/arch/plugin (plugin.exe for Windows), or is the dist folder of
goreleaser; or name the executables with --platform. One with another format or
architecture, without its executable bit, that tells another version than the
one that it is packaged as, or that is of another build than the rest is refused.
This platform's executable is asked; the others cannot run here, so they are
searched for the version, and compared by what Go says of their builds. One that is linked dynamically, and does
not start in its own image, or that tells no version, such as "dev", is packaged
with a warning, which --quiet does not silence.

The same executables, version, flags and environment (SOURCE_DATE_EPOCH, and the
variables of GitHub Actions and GitLab CI) give the same bytes, in any folder, on
any machine and at any time. There is no network access, but for --windows-base.`,
		Example: `  fleeting-plugin package dist --version 1.2.3 --layout build/layout
  fleeting-plugin package --platform linux/amd64=bin/plugin --version 1.2.3`,
		Args: cobra.MaximumNArgs(1),
	}
	mapPackagerErrors(app)
	flags := addPackFlags(app, app.RegistryFlags(cmd.Flags()), cmd.Flags())
	cmd.Flags().StringVarP(&layout, "layout", "l", "layout", "folder to write; a layout that is there is replaced")
	cmd.Flags().StringVar(&version, "version", "", "version of the plugin, such as 1.2.3 (required)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if version == "" {
			return cli.Usagef("--version is missing")
		}
		v, err := packager.ParseVersion(version)
		if err != nil {
			return err
		}
		dist, err := flags.scan(cmd.Context(), args, v)
		if err != nil {
			return explain(err)
		}
		opts, err := flags.options()
		if err != nil {
			return explain(err)
		}
		packed, err := packager.Pack(cmd.Context(), dist, v, layout, opts)
		if err != nil {
			return explain(err)
		}
		return app.Print(packed, func(w io.Writer) error {
			if err := printPlatforms(w, packed.Platforms); err != nil {
				return err
			}
			_, err := plaintext.Fprintf(w, "\npackaged %s %s\ncreated  %s\nlayout   %s\n", packed.Version, packed.Digest, told(packed.Created), packed.Layout)
			return err
		})
	}
	return cmd
}

// told writes the time that an artifact carries.
func told(created *time.Time) string {
	if created == nil {
		return "not said: neither by --created nor by SOURCE_DATE_EPOCH nor by the executables"
	}
	return created.Format(time.RFC3339)
}

func printPlatforms(w io.Writer, platforms []packager.PlatformResult) error {
	rows := make([][]string, len(platforms))
	for i, p := range platforms {
		rows[i] = []string{p.Platform, size(p.Size), p.Digest.String()}
	}
	return cli.Table(w, []string{"platform", "size", "manifest"}, rows)
}

// size writes bytes for people.
func size(n int64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
