package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// newInspectCmd shows what is published.
func newInspectCmd(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect REF|LAYOUT[:VERSION]",
		Short: "Show platforms, signatures, attestations and bills of materials of an artifact",
		Long: `Show what REF stands for: for which platforms, how large, who says to have signed
it, which attestations and bills of materials hang off it, and which aliases
point to it. REF may also be the folder of an OCI layout.

Nothing is verified here; fleeting-plugin verify does that.`,
		Example: `  fleeting-plugin inspect registry.example.com/group/plugin:latest
  fleeting-plugin inspect build/layout:1.2.3 --output json`,
		Args: cobra.ExactArgs(1),
	}
	mapPackagerErrors(app)
	registry := app.RegistryFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		source, reference, err := openSource(cmd, registry, args[0])
		if err != nil {
			return err
		}
		report, err := packager.Inspect(cmd.Context(), source, reference)
		if err != nil {
			return err
		}
		return app.Print(report, func(w io.Writer) error { return printReport(w, report) })
	}
	return cmd
}

// openSource opens a layout, if the argument names one, or a repository.
func openSource(cmd *cobra.Command, registry *cli.RegistryFlags, arg string) (packager.Source, string, error) {
	dir, tag := arg, ""
	if _, err := os.Stat(filepath.Join(dir, ocispec.ImageLayoutFile)); err != nil {
		if i := strings.LastIndexByte(arg, ':'); i > 0 {
			dir, tag = arg[:i], arg[i+1:]
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ocispec.ImageLayoutFile)); err != nil {
		repo, reference, err := openTarget(registry, arg)
		if reference == "" {
			reference = "latest"
		}
		return repo, reference, err
	}
	layout, err := packager.OpenLayout(cmd.Context(), dir)
	if err != nil || tag != "" {
		return layout, tag, err
	}
	tags, err := layout.Tags(cmd.Context())
	if err != nil {
		return nil, "", err
	}
	if len(tags) != 1 {
		return nil, "", cli.Usagef("%s holds %s: name one, as in %s:VERSION", dir, strings.Join(tags, ", "), dir)
	}
	return layout, tags[0], nil
}
