package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/radome-io/fleeting-plugin-openstack/internal/flagtext"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// defaultTarget is the plugin folder unless FLEETING_PLUGIN_PATH names another.
const defaultTarget = "/plugins"

// bootstrap serves "bootstrap REPOSITORY" in place of fleeting's library, and
// gives the exit code. As the library does, it prints the folder and nothing
// else on stdout.
func bootstrap(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet(program+" bootstrap", flag.ContinueOnError)
	err := flagtext.Parse(flags, args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(stdout, bootstrapHelp, flags.Name())
		return exitOK
	}
	if err == nil && flags.NArg() != 1 {
		err = fmt.Errorf("takes one repository, not %d arguments; see %s --help", flags.NArg(), flags.Name())
	}
	if err != nil {
		fmt.Fprintln(stderr, "bootstrap:", err)
		return exitUsage
	}
	done, err := copyPlugin(flags.Arg(0), getenv)
	if done.Warning != "" {
		fmt.Fprintln(stderr, "warning:", done.Warning)
	}
	if err != nil {
		fmt.Fprintln(stderr, program+":", err)
		return exitFailed
	}
	if done.Repaired {
		fmt.Fprintln(stderr, "repaired:", done.Written)
	}
	fmt.Fprintln(stdout, done.Dir)
	return exitOK
}

const bootstrapHelp = `%s REPO: copy the plugin into $FLEETING_PLUGIN_PATH, or /plugins

REPO is the name in "plugin" of the runner's config.toml, without the version,
such as registry.example.com/plugins/openstack. The folder of the executable is
copied, and the name of its copy printed. It takes no flags.
`

func copyPlugin(repository string, getenv func(string) string) (plugin.Bootstrapped, error) {
	executable, err := os.Executable()
	if err != nil {
		return plugin.Bootstrapped{}, err
	}
	return plugin.Bootstrap(plugin.BootstrapOptions{
		Repository:     repository,
		Source:         filepath.Dir(executable),
		Target:         cmp.Or(getenv("FLEETING_PLUGIN_PATH"), defaultTarget),
		Version:        plugin.VersionInfo(version, revision),
		PackageVersion: getenv("FLEETING_PLUGIN_PKG_VERSION"),
	})
}
