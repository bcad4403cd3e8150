package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// runnerEntry is how a runner uses this cloud.
type runnerEntry struct {
	user                string
	port                int
	clouds, key, plugin string
}

// pluginBeside is the plugin's executable beside this one, where make build
// puts both, or else where people put it.
func pluginBeside(executable func() (string, error)) string {
	const name = "fleeting-plugin-openstack"
	if self, err := executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name+filepath.Ext(self))
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside
		}
	}
	if runtime.GOOS == "windows" {
		return `C:\GitLab-Runner\` + name + ".exe"
	}
	return "/usr/local/bin/" + name
}

// toml is a runner's config.toml that uses the cloud, whole but for the token.
func (e runnerEntry) toml() string {
	return fmt.Sprintf(`concurrent = 4

[[runners]]
  name = "simulator"
  url = "https://gitlab.com"
  token = "glrt-..."
  executor = "instance"
  [runners.autoscaler]
    plugin = %q
    capacity_per_instance = 1
    max_use_count = 1
    max_instances = 3
    [runners.autoscaler.plugin_config]
      cloud = %q
      clouds_config = %q
      name = "runner"
      [runners.autoscaler.plugin_config.server]
        flavor = "m1.small"
        image = "Ubuntu 24.04"
        networks = ["private"]
        key_name = "fleeting"
    [runners.autoscaler.connector_config]
      username = %q
      protocol_port = %d
      key_path = %q
      use_static_credentials = true
`, e.plugin, openstacksim.CloudPassword, e.clouds, e.user, e.port, e.key)
}

func explain(out io.Writer, url, config string, e runnerEntry) {
	_, _ = fmt.Fprintf(out, `An OpenStack cloud in memory answers at %[1]s until you press Ctrl-C.

For the plugin: %[2]s is a runner's config.toml that uses this cloud.

For any OpenStack client:
    export OS_CLIENT_CONFIG_FILE=%[3]s OS_CLOUD=%[4]s
    openstack server create --flavor m1.small --image "Ubuntu 24.04" --network private --key-name fleeting first
    openstack server list

Every server answers SSH on its own "private" address, to commands, without a terminal:
    ssh -p %[5]d -i %[6]s -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR %[7]s@127.10.x.y 'echo $HOSTNAME'
What you run there really runs on this machine, as you, in a folder that goes with the server.

To break it while it runs, here with half of all servers:
    curl -d build-error:50%% %[1]s%[8]s

`, url, config, e.clouds, openstacksim.CloudPassword, e.port, e.key, e.user, faultsPath)
}
