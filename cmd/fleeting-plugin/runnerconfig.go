package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
)

// configPlace finds the runner's configuration as the runner does.
type configPlace struct {
	places places.Places
	// variable is CONFIG_FILE, which the runner reads too.
	variable string
	// flag is --config.
	flag string
	// root says that the process is root's.
	root bool
}

func placeOf(app *cli.App, flag string) configPlace {
	return configPlace{places: places.Of(app.LookupEnv), variable: app.Env("CONFIG_FILE"), flag: flag, root: os.Geteuid() == 0}
}

// named is what --config or CONFIG_FILE names.
func (c configPlace) named() string { return cmp.Or(c.flag, c.variable) }

// path is what is named, else where the runner looks.
func (c configPlace) path() string { return cmp.Or(c.named(), c.places.RunnerConfig(c.root)) }

// exists says whether there is a configuration to go by. One that was named is
// taken to be there, and so is one that cannot be looked at.
func (c configPlace) exists() bool {
	_, err := os.Stat(c.path())
	return c.named() != "" || !errors.Is(err, fs.ErrNotExist)
}

// lock is the lock file: --lock, else beside the configuration, else, where there
// is none, in the current folder.
func (c configPlace) lock(flag string) string {
	switch {
	case flag != "":
		return flag
	case c.exists():
		return filepath.Join(filepath.Dir(c.path()), lockName)
	}
	return lockName
}

// referenced gives what the runner's configuration names, so that nothing it needs
// is removed. There need not be one, unless it was named; one that cannot be read
// is an error.
func referenced(app *cli.App, flag string) ([]installer.Reference, error) {
	if !placeOf(app, flag).exists() {
		return nil, nil
	}
	plugins, err := readConfig(app, flag, "name the runner's configuration, so that nothing it needs is removed: --config FILE")
	return installer.References(plugins), err
}

// readConfig reads the plugins that the runner's configuration names; next is
// what to try if it is not there.
func readConfig(app *cli.App, flag, next string) ([]installer.ConfigPlugin, error) {
	name := placeOf(app, flag).path()
	content, err := readInput(name, next)
	if err != nil {
		return nil, err
	}
	plugins, err := installer.ParseRunnerConfig(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return plugins, nil
}
