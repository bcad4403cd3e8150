package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
	"github.com/radome-io/fleeting-plugin-openstack/internal/modcache"
	"github.com/radome-io/fleeting-plugin-openstack/internal/notices"
	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// licensesFlags are those of the command licenses.
type licensesFlags struct {
	own    string
	given  []string
	beside bool
}

// newLicensesCmd writes the licence texts that have to go with executables.
func newLicensesCmd(app *cli.App) *cobra.Command {
	var flags licensesFlags
	cmd := &cobra.Command{
		Use:   "licenses EXECUTABLE...",
		Short: "Write the licence texts of everything in Go executables",
		Long: `Write the licences, notices and patents of every module that is linked into Go
executables and of the Go standard library, each text once, and where the source
of modules under the MPL or GPL is. Most licences ask you to ship these texts.

Run it where the executables were built: texts come from Go's module cache and
installation. A module without a text is an error. Of several executables, one
text has everything. With --beside, the text is written beside the executables, as
` + notices.FileName + `: package and release publish it with the plugin, and
take the licences in the bills of materials from it.`,
		Example: `  make dist
  fleeting-plugin licenses --license LICENSE --beside dist/*/*/plugin*`,
		Args: cli.Args(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd.Context(), app, args) },
	}
	cmd.Flags().StringVar(&flags.own, "license", "", "`FILE` with the licence of the program itself, which comes first")
	cmd.Flags().StringArrayVar(&flags.given, "text", nil, "`MODULE=FILE`: the text of a module that has none, or comes from a folder; std is the standard library")
	cmd.Flags().BoolVar(&flags.beside, "beside", false, "write "+notices.FileName+" into the folder of each executable")
	app.MapError(notices.ErrNoText, cli.Failed, "run this where the executables were built, after go mod download; for a module that has no text, give one with --text MODULE=FILE")
	app.MapError(notices.ErrUnused, cli.Usage, "go version -m lists what is linked")
	return cmd
}

// run collects the texts of all executables before it writes any.
func (f licensesFlags) run(ctx context.Context, app *cli.App, args []string) error {
	opts, err := textOptions(ctx, app, f.own, f.given)
	if err != nil {
		return err
	}
	folders, err := f.read(args, sbom.NewModuleCache(opts.ModuleCache))
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	for dir, executables := range folders {
		if texts[dir], err = notices.Collect(opts, executables...); err != nil {
			return err
		}
	}
	if !f.beside {
		_, err := app.Out.Write(texts[""])
		return err
	}
	for _, dir := range slices.Sorted(maps.Keys(texts)) {
		if err := durable.WriteFile(filepath.Join(dir, notices.FileName), texts[dir], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// read reads executables, by the folder that their text is for: "" is the output.
func (f licensesFlags) read(args []string, licenses sbom.Licenses) (map[string][]sbom.Executable, error) {
	folders := map[string][]sbom.Executable{}
	for _, arg := range args {
		dir := ""
		if f.beside {
			dir = filepath.Dir(arg)
			// A pattern such as plugin* finds what this wrote before.
			if filepath.Base(arg) == notices.FileName {
				continue
			}
		}
		exe, err := sbom.ReadFile(arg, sbom.Options{Licenses: licenses, SkipDigest: true})
		if errors.Is(err, fs.ErrNotExist) {
			err = cli.Hint(cli.WithCode(err, cli.Usage), "name an executable, such as dist/linux/amd64/plugin")
		}
		if err != nil {
			return nil, err
		}
		folders[dir] = append(folders[dir], exe)
	}
	return folders, nil
}

// textOptions reads the files that the flags name, and asks Go where the others are.
func textOptions(ctx context.Context, app *cli.App, own string, given []string) (notices.Options, error) {
	places, err := modcache.Ask(ctx, app.LookupEnv)
	if err != nil {
		return notices.Options{}, cli.Hint(err, "Go has to be in PATH: the texts come from its module cache")
	}
	opts := notices.Options{Places: places, Given: map[string][]byte{}}
	if own != "" {
		if opts.Own, err = os.ReadFile(own); err != nil {
			return opts, cli.WithCode(fmt.Errorf("--license: %w", err), cli.Usage)
		}
	}
	for _, arg := range slices.Sorted(slices.Values(given)) {
		module, file, ok := strings.Cut(arg, "=")
		if !ok || module == "" || file == "" {
			return opts, cli.Usagef("--text %s: write it as MODULE=FILE", arg)
		}
		if opts.Given[module], err = os.ReadFile(file); err != nil {
			return opts, cli.WithCode(fmt.Errorf("--text: %w", err), cli.Usage)
		}
		if len(bytes.TrimSpace(opts.Given[module])) == 0 {
			return opts, cli.Usagef("--text %s: %s is empty", arg, file)
		}
	}
	return opts, nil
}
