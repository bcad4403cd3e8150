package dist

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/modcache"
	"github.com/radome-io/fleeting-plugin-openstack/internal/notices"
	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// noticesDir has the licences of each executable, for those who package it.
const noticesDir = "notices"

// writeNotices writes the licences of what is linked into the executables in
// out/bin: of each into out/notices, of each plugin beside it, and of all together
// into out/bin.
func writeNotices(ctx context.Context, opts Options, out string) error {
	own, err := os.ReadFile(filepath.Join(opts.Source, "LICENSE"))
	if err != nil {
		return fmt.Errorf("the licence of the program itself: %w", err)
	}
	places, err := modcache.Ask(ctx, opts.lookupEnv)
	if err != nil {
		return err
	}
	from := notices.Options{Places: places, Own: own}
	licenses := sbom.NewModuleCache(places.ModuleCache)
	var all []sbom.Executable
	for _, p := range opts.Platforms {
		commands := []string{pluginName, toolName}
		if opts.PluginOnly {
			commands = commands[:1]
		}
		for _, command := range commands {
			exe, err := sbom.ReadFile(filepath.Join(out, "bin", download(command, p)), sbom.Options{Licenses: licenses, SkipDigest: true})
			if err != nil {
				return err
			}
			all = append(all, exe)
			files := []string{filepath.Join(out, noticesDir, download(command, p)+".txt")}
			if command == pluginName {
				files = append(files, filepath.Join(out, "plugin", filepath.FromSlash(p.Dir()), notices.FileName))
			}
			if err := writeTexts(from, files, exe); err != nil {
				return fmt.Errorf("the licences in %s: %w", exe.Name, err)
			}
		}
	}
	return writeTexts(from, []string{filepath.Join(out, "bin", notices.FileName)}, all...)
}

// lookupEnv reads a variable of what the go command is called with.
func (o Options) lookupEnv(name string) (string, bool) {
	for _, entry := range slices.Backward(o.Env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return os.LookupEnv(name)
}

func writeTexts(from notices.Options, files []string, executables ...sbom.Executable) error {
	text, err := notices.Collect(from, executables...)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
