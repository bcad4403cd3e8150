package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// newSBOMCmd writes the bill of materials of a file.
func newSBOMCmd(app *cli.App) *cobra.Command {
	var format, name, release, licenses string
	cmd := &cobra.Command{
		Use:   "sbom EXECUTABLE",
		Short: "Write the bill of materials of a Go executable",
		Long: `Write the bill of materials of a Go executable from its build information: the main
module, every linked module with version and checksum, the Go version and the
build settings. Licences come from the module cache.`,
		Example: `  fleeting-plugin sbom dist/linux/amd64/plugin --format cyclonedx`,
		Args:    cli.Args(1, 1),
	}
	cmd.Flags().StringVar(&format, "format", "spdx", "`spdx|cyclonedx`: SPDX 2.3 or CycloneDX 1.6, both JSON")
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the release (default: the main module)")
	cmd.Flags().StringVar(&release, "release", "", "`VERSION` of the release (default: the main module's)")
	cmd.Flags().StringVar(&licenses, "licenses", "", "licence of the program as an SPDX `EXPRESSION`")
	app.MapError(sbom.ErrNoBuildInfo, cli.Failed, "build it with Go, and without tools that strip the build information")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
			return cli.Hint(cli.Usagef("%s is a folder", args[0]), "name an executable in it, such as dist/linux/amd64/plugin")
		}
		exe, err := sbom.ReadFile(args[0], sbom.Options{Licenses: sbom.NewModuleCache(moduleCache(cmd.Context(), app))})
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = cli.Hint(cli.WithCode(err, cli.Usage), "name an executable, such as dist/linux/amd64/plugin")
			}
			return err
		}
		created, err := documentTime(app, exe)
		if err != nil {
			return explain(err)
		}
		doc, err := sbom.New(sbom.Info{
			Name:    cmp.Or(name, exe.Main.Path, exe.Name),
			Version: cmp.Or(strings.TrimPrefix(release, "v"), strings.TrimPrefix(known(exe.Main.Version), "v"), "unknown"), Created: created, License: licenses,
			Tool: "fleeting-plugin", ToolVersion: cli.NewVersion("fleeting-plugin", version, revision).Version,
		}, exe)
		if err != nil {
			return err
		}
		encode, ok := map[string]func() ([]byte, error){"spdx": doc.SPDX, "cyclonedx": doc.CycloneDX}[format]
		if !ok {
			return cli.Usagef("unknown format %q: use spdx or cyclonedx", format)
		}
		raw, err := encode()
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		_, err = app.Out.Write(raw)
		return err
	}
	return cmd
}

// known leaves out what the linker writes for a version that it does not know.
func known(version string) string {
	if version == "(devel)" {
		return ""
	}
	return version
}

// documentTime is SOURCE_DATE_EPOCH, else the commit's time, else the clock's.
func documentTime(app *cli.App, exe sbom.Executable) (time.Time, error) {
	detected, err := packager.DetectMetadata(app.LookupEnv)
	if err != nil || !detected.Created.IsZero() {
		return detected.Created, err
	}
	if t, err := time.Parse(time.RFC3339, exe.Setting("vcs.time")); err == nil {
		return t, nil
	}
	return app.Now(), nil
}
