package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
)

const cloudsHead = `# clouds.yaml

<!-- Written by plugin/internal/configdoc from plugin/internal/cloud: go generate ./plugin -->

The plugin reads the [format of openstacksdk](https://docs.openstack.org/openstacksdk/latest/user/config/configuration.html). How to write an entry: [Run on OpenStack](../guides/openstack.md#credentials).

## Files

The plugin looks for ` + "`clouds.yaml`, `clouds.yml` or `clouds.json`" + ` and takes the first of:

1. the path in ` + "`clouds_config`" + `,
2. the path in the variable ` + "`OS_CLIENT_CONFIG_FILE`" + `,
3. the working directory, ` + "`$XDG_CONFIG_HOME/openstack` or `~/.config/openstack`, and `/etc/openstack`" + `. On Windows and macOS also openstacksdk's folders there.

Secrets may be in a ` + "`secure.yaml`, `.yml` or `.json`" + ` with the same structure, which is laid over ` + "`clouds.yaml`" + `: the path in the variable ` + "`OS_CLIENT_SECURE_FILE`" + `, else beside ` + "`clouds.yaml`" + `, else, without ` + "`clouds_config`" + `, in the folders above. A ` + "`profile`" + ` is looked up in ` + "`clouds-public.yaml`" + ` beside ` + "`clouds.yaml`" + `. If one of the files changes, the plugin reads all of them again.

With ` + "`auth_from_env = true`" + ` in ` + "`plugin_config`" + ` there is no file. Each key below can then be set by a variable: ` + "`auth.username` by `OS_USERNAME`, `region_name` by `OS_REGION_NAME`" + `. A cloud named ` + "`envvars`" + ` does the same if there is no ` + "`clouds.yaml`" + `.

## Keys

A ` + "`-` in a key is read as `_`" + `. The plugin refuses an unknown key of ` + "`auth`" + ` and every value of the wrong type, and reports all mistakes at once. An unknown key beside ` + "`auth`" + ` has no effect; the plugin logs it, and ` + "`check`" + ` has a note.

In the keys with a ` + "`*`, write `compute`, `network`, `image` or `block_storage` (or `volumev3`, `volume`) for it" + `.

| Key | Meaning |
| --- | --- |
`

func cloudsPage() []byte {
	var b bytes.Buffer
	b.WriteString(cloudsHead)
	for _, key := range cloud.CloudsKeys() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", key.Name, strings.ReplaceAll(key.Text, "|", `\|`))
	}
	return b.Bytes()
}
