package main

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// newPackageCmd turns executables into an OCI layout.
func newPackageCmd(app *cli.App) *cobra.Command {
	var layout, version string
	cmd := &cobra.Command{
		Use:   "package DIR",
		Short: "Package executables as an OCI layout",
		Long: `Package the executables below DIR, one for each platform, as an OCI image layout.

DIR has one of these forms:

  os/arch/plugin     linux/amd64/plugin, windows/amd64/plugin.exe
  NAME-os-arch       plugin-linux-amd64, plugin-windows-amd64.exe
  goreleaser's dist  with its artifacts.json

Or name each executable with --platform.

An executable is refused if it has another format or architecture than its
platform, if it is not executable, if it reports another version than --version,
or if it is of another build than the others. The executable for this machine is
run with -version. The others are searched for the version, and their Go build
information is compared.

Warnings, which --quiet does not silence, report executables that are linked
dynamically, that report no version, or that were built from a checkout with
uncommitted changes.

The same executables, version, flags and environment (SOURCE_DATE_EPOCH, and the
variables of GitHub Actions and GitLab CI) produce the same bytes on any machine
and at any time. The network is used for --windows-base only.`,
		Example: `  fleeting-plugin package dist --version 1.2.3 --layout build/layout
  fleeting-plugin package --platform linux/amd64=bin/plugin --version 1.2.3`,
		Args: cli.Args(0, 1),
	}
	mapPackagerErrors(app)
	flags := addPackFlags(app, app.RegistryFlags(cmd.Flags()), cmd.Flags())
	cmd.Flags().StringVarP(&layout, "layout", "l", "layout", "`DIR` to write; a layout that is there is replaced")
	cmd.Flags().StringVar(&version, "version", "", "`VERSION` of the plugin, such as 1.2.3 (required)")
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
		opts, err := flags.options(cmd.Context())
		if err != nil {
			return explain(err)
		}
		packed, err := packager.Pack(cmd.Context(), dist, v, layout, opts)
		if err != nil {
			return explain(err)
		}
		return app.Print(packed, func(p *cli.Page) {
			printPlatforms(p, packed.Platforms)
			p.Print("\n")
			p.Field(9, "packaged", packed.Version.String()+" "+packed.Digest.String())
			p.Field(9, "created", told(packed.Created))
			p.Field(9, "layout", packed.Layout)
		})
	}
	return cmd
}

// told writes the time that an artifact carries.
func told(created *time.Time) string {
	if created == nil {
		return "unknown: set --created or SOURCE_DATE_EPOCH"
	}
	return created.Format(time.RFC3339)
}

func printPlatforms(p *cli.Page, platforms []packager.PlatformResult) {
	rows := make([][]string, len(platforms))
	var all []filesOf
	for i, one := range platforms {
		rows[i] = []string{one.Platform, cli.Size(one.Size), one.Digest.String()}
		all = append(all, filesOf{one.Platform, one.Files})
	}
	p.Table([]string{"platform", "size", "manifest"}, rows)
	printFiles(p, all)
}

// filesOf is what the layer of a platform holds.
type filesOf struct {
	platform string
	files    []packager.LayerFile
}

// printFiles lists every file of the layers; platforms with the same files have
// one line. The size of an executable is that of its platform.
func printFiles(p *cli.Page, all []filesOf) {
	var lists []string
	platforms := map[string][]string{}
	for _, f := range all {
		if f.files == nil {
			continue
		}
		list := listOf(f.files)
		if platforms[list] == nil {
			lists = append(lists, list)
		}
		platforms[list] = append(platforms[list], f.platform)
	}
	if len(lists) > 0 {
		p.Print("\nfiles\n")
	}
	for _, list := range lists {
		p.Printf("  %s: %s\n", strings.Join(platforms[list], ", "), list)
	}
}

func listOf(files []packager.LayerFile) string {
	words := make([]string, len(files))
	for i, f := range files {
		words[i] = f.Name
		if strings.ContainsFunc(f.Name, func(r rune) bool { return !unicode.IsPrint(r) || r == ',' }) {
			words[i] = strconv.Quote(f.Name)
		}
		switch {
		case f.Kind != "":
			words[i] += " (" + f.Kind + ")"
		case f.Name != "plugin" && f.Name != "plugin.exe":
			words[i] += " (" + cli.Size(f.Size) + ")"
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
