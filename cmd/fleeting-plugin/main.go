// Command fleeting-plugin packages, publishes, verifies and installs plugins
// for GitLab Runner's fleeting through OCI registries.
package main

import (
	"os"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

func main() { os.Exit(cli.Main(NewRootCmd)) }
