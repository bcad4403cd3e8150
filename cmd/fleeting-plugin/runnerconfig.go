package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// configPlace finds the runner's configuration as the runner does.
type configPlace struct {
	env func(name string) string
	// flag is --config.
	flag string
	// root says that the process is root's.
	root bool
}

func placeOf(app *cli.App, flag string) configPlace {
	return configPlace{env: app.Env, flag: flag, root: os.Geteuid() == 0}
}

// named is what somebody named: with --config, or with CONFIG_FILE, which the
// runner reads too.
func (c configPlace) named() string { return cmp.Or(c.flag, c.env("CONFIG_FILE")) }

// path is what is named, else where the runner looks: root's configuration is
// the system's, other users have their own, and where there is no home it is in
// the current folder.
func (c configPlace) path() string {
	home := c.env("HOME")
	switch {
	case c.named() != "":
		return c.named()
	case c.root:
		return "/etc/gitlab-runner/config.toml"
	case home == "" || runtime.GOOS == "windows":
		return "config.toml"
	}
	return filepath.Join(home, ".gitlab-runner", "config.toml")
}

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
