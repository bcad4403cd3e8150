package plugin

//go:generate go run ./internal/configdoc -o ../docs/reference/configuration.md

// Config is the plugin_config section of a runner's autoscaler. Names of cloud
// resources are resolved when the plugin starts; an ID may stand for each.
type Config struct {
	// The `clouds.yaml` entry.
	//
	// required
	Cloud string `json:"cloud"`

	// The path to `clouds.yaml`. A `secure.yaml` beside it is read too. Without
	// it, the standard places are searched: `OS_CLIENT_CONFIG_FILE`, the working
	// directory, `~/.config/openstack` and `/etc/openstack`. `OS_REGION_NAME` and
	// `OS_INTERFACE` in the runner's environment override the region and the
	// interface of the entry.
	//
	// default: standard locations
	CloudsConfig string `json:"clouds_config"`

	// The group name. Servers are named `<name>-<random>`. 1 to 54 lowercase
	// letters, digits or dashes; 51 at most with the default tag.
	//
	// required
	Name string `json:"name"`

	// The Nova tag marking the group's servers, 1 to 60 characters without `/`
	// and `,`. The plugin deletes servers that carry it along with the group's
	// name and owner mark, so give each runner manager in a project its own.
	//
	// default: `fleeting:<name>`
	Tag string `json:"tag"`

	// The servers to create.
	Server ServerConfig `json:"server"`

	// The network to connect on, by name or ID, one of `server.networks`.
	// Required when `server.networks` has several.
	AddressNetwork string `json:"address_network"`

	// `ipv4` or `ipv6`.
	//
	// default: `ipv4`
	AddressFamily string `json:"address_family"`

	// How long a server may stay in BUILD before it is deleted.
	//
	// default: `15m`
	BuildTimeout Duration `json:"build_timeout"`

	// How long a deletion may take before it is forced. Five minutes later the
	// server is set aside: it holds no slot any more, and is still watched.
	//
	// default: `10m`
	DeleteTimeout Duration `json:"delete_timeout"`

	// How many servers are created at the same time, 1 to 100.
	//
	// default: `10`
	MaxParallelCreates int `json:"max_parallel_creates"`
}

// ServerConfig is the plugin_config.server section.
type ServerConfig struct {
	// Name or ID.
	//
	// required
	Flavor string `json:"flavor"`

	// Name or ID. A name resolves at each scale-up to the newest active image
	// with that name, public images included: publishing a new image rolls it
	// out. Use an ID to pin one.
	//
	// required
	Image string `json:"image"`

	// Boot from a new volume of this size, in GiB, made from the image and
	// deleted with the server: for flavors without a root disk, or for a larger
	// disk.
	VolumeSize int `json:"volume_size"`

	// The volume type, with `server.volume_size`. Needs Nova API microversion
	// 2.67.
	VolumeType string `json:"volume_type"`

	// Names or IDs.
	//
	// required
	Networks []string `json:"networks"`

	// Names or IDs.
	SecurityGroups []string `json:"security_groups"`

	// A Nova key pair of the user that the plugin authenticates as.
	KeyName string `json:"key_name"`

	// User data, passed as is, compressed only when it is above Nova's limit of
	// 65,535 base64 characters and cloud-init can read it so. An inline
	// cloud-config must start at the first column: TOML keeps the indentation
	// of multi-line strings.
	UserData string `json:"user_data"`

	// A file to read the user data from, at startup. Excludes
	// `server.user_data`.
	UserDataFile string `json:"user_data_file"`

	// Attach a config drive with the user data and metadata, for clouds without
	// a metadata service.
	//
	// default: `false`
	ConfigDrive bool `json:"config_drive"`

	// Extra Nova tags, 49 at most, each 1 to 60 characters without `/` and `,`.
	Tags []string `json:"tags"`

	// Server metadata, 127 entries at most. Keys of 1 to 255 characters, values
	// of up to 255. The key `fleeting:group` is the plugin's own.
	Metadata map[string]string `json:"metadata"`

	// Where servers are created.
	AvailabilityZone string `json:"availability_zone"`

	// Name or ID of a Nova server group the servers join. Its
	// server_group_members quota, often 10, then limits `max_instances`, and a
	// hard anti-affinity policy needs a host per server: prefer
	// soft-anti-affinity.
	ServerGroup string `json:"server_group"`
}
