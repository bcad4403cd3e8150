package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// defaultTarget is the plugin folder unless FLEETING_PLUGIN_PATH names another.
const defaultTarget = "/plugins"

// bootstrap serves "bootstrap REPOSITORY" in place of fleeting's library, and
// gives the exit code. As the library does, it prints the folder and nothing
// else on stdout.
func bootstrap(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	done, err := copyPlugin(args, getenv)
	if done.Warning != "" {
		fmt.Fprintln(stderr, "warning:", done.Warning)
	}
	if err != nil {
		fmt.Fprintln(stderr, "fleeting-plugin-openstack:", err)
		return 1
	}
	if done.Repaired {
		fmt.Fprintln(stderr, "repaired:", done.Written)
	}
	fmt.Fprintln(stdout, done.Dir)
	return 0
}

func copyPlugin(args []string, getenv func(string) string) (plugin.Bootstrapped, error) {
	executable, err := os.Executable()
	if err != nil {
		return plugin.Bootstrapped{}, err
	}
	var repository string
	if len(args) > 0 {
		repository = args[0]
	}
	return plugin.Bootstrap(plugin.BootstrapOptions{
		Repository:     repository,
		Source:         filepath.Dir(executable),
		Target:         cmp.Or(getenv("FLEETING_PLUGIN_PATH"), defaultTarget),
		Version:        plugin.VersionInfo(version, revision),
		PackageVersion: getenv("FLEETING_PLUGIN_PKG_VERSION"),
	})
}
