package plugin

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

//go:generate go run ./internal/configdoc -o ../docs/reference/configuration.md -clouds ../docs/reference/clouds-yaml.md

// Config is the plugin_config section of a runner's autoscaler. Names of cloud
// resources are resolved when the plugin starts; an ID may stand for each.
type Config struct {
	// Which entry of `clouds.yaml` to use. Required, unless `auth_from_env` is set.
	Cloud string `json:"cloud"`

	// The path to `clouds.yaml`. A `~` in front is the home folder. A `secure.yaml`
	// beside it is read too. Without it, the standard places are searched:
	// `OS_CLIENT_CONFIG_FILE`, the working directory, `~/.config/openstack` and
	// `/etc/openstack`, or those of [Windows](../guides/windows.md). If the runner's
	// environment has `OS_REGION_NAME` or `OS_INTERFACE`, these count, and not the
	// entry's region and interface. Which keys are understood:
	// [clouds.yaml](clouds-yaml.md).
	//
	// default: standard locations
	CloudsConfig string `json:"clouds_config"`

	// Whether to log in with the variables `OS_*` of the runner's environment alone,
	// such as `OS_AUTH_URL`, and without `clouds.yaml`. Excludes `cloud` and
	// `clouds_config`. A change of the variables needs a restart of the runner.
	//
	// default: `false`
	AuthFromEnv bool `json:"auth_from_env"`

	// What the group is called, in 1 to 54 lowercase letters, digits and dashes;
	// 51 when `tag` is left to its default, for a tag ends at 60. A server's name
	// is this one, a dash and eight random characters.
	//
	// required
	Name string `json:"name"`

	// The tag by which Nova lists the group's servers, 1 to 60 characters without
	// `/` and `,`. What carries it, and the group's name and owner mark besides,
	// is the plugin's to delete: no two runner managers of a project may share it.
	//
	// default: `fleeting:<name>`
	Tag string `json:"tag"`

	// The servers to create.
	Server ServerConfig `json:"server"`

	// On which of `server.networks` the runner reaches the servers; a name or an
	// ID, as there or not. With a single network it may be left out.
	AddressNetwork string `json:"address_network"`

	// `ipv4` or `ipv6`.
	//
	// default: `ipv4`
	AddressFamily string `json:"address_family"`

	// Whether a server takes jobs only once Nova shows its floating address. Set it
	// if the cloud attaches one by itself and `use_external_addr` is set in
	// `connector_config`: Nova may show the address a minute late, and the runner
	// would connect to the fixed address until then.
	//
	// default: `false`
	WaitForFloatingIP bool `json:"wait_for_floating_ip"`

	// The time that a server gets to come up. One that is in BUILD for longer is
	// deleted.
	//
	// default: `15m`
	BuildTimeout Duration `json:"build_timeout"`

	// How long a deletion may take before the plugin forces it. Five minutes later
	// the plugin quarantines the server: it holds no place of the group any more,
	// and the plugin goes on trying to delete it.
	//
	// default: `10m`
	DeleteTimeout Duration `json:"delete_timeout"`

	// How many creations the plugin sends side by side at most, 1 to 100. If you do
	// not set it, the plugin begins with 10, and adds one for each that the cloud
	// takes while as many as allowed are under way, up to 20. A creation that meets
	// a busy or broken API halves the number, even if you set it.
	//
	// default: `10`, growing
	MaxParallelCreates *int `json:"max_parallel_creates"`

	// How many deletions the plugin sends side by side at most, 1 to 100. They grow
	// and shrink like creations; if you do not set it, from 10 up to 100.
	//
	// default: `10`, growing
	MaxParallelDeletes *int `json:"max_parallel_deletes"`

	// How many API calls the plugin makes a second at most, 1 to 1000, and twice as
	// many in a burst. A server costs two: its creation and its deletion. If the
	// cloud refuses calls for their rate (429), the plugin makes fewer by itself. If
	// this setting is what calls wait for, the log says so.
	//
	// default: `50`
	MaxCallsPerSecond *int `json:"max_calls_per_second"`

	// How many servers the group can have at most, 1 to 1000, over all processes
	// that serve it on this machine. The runner does not start if `max_instances` is
	// more. Set both to the same number to keep that limit while a runner's token is
	// replaced: for a while two processes then serve the group, and each has its own
	// `max_instances`.
	//
	// default: `1000`
	MaxSize int `json:"max_size"`

	// The absolute path of a folder for lock files, by which processes on this
	// machine that serve the same group know of each other. It is created if it is
	// missing, and only the runner's user may be able to write to it. Containers that
	// can run at the same time need a common folder.
	//
	// default: `fleeting-plugin-openstack-<user ID>` in the folder for temporary files; on Windows `%LOCALAPPDATA%\fleeting-plugin-openstack`
	LockDir string `json:"lock_dir"`
}

// ipv6 reports whether the runner connects to IPv6 addresses.
func (c *Config) ipv6() bool { return c.AddressFamily == "ipv6" }

// ServerConfig is the plugin_config.server section.
type ServerConfig struct {
	// Name or ID.
	//
	// required
	Flavor string `json:"flavor"`

	// An ID always means that image. A name resolves, whenever servers are created,
	// to the newest active image of that name that the project owns, or else to the
	// newest that others share or publish. An upload under the same name reaches new
	// servers without a restart.
	//
	// required
	Image string `json:"image"`

	// GiB of a volume that each server boots from instead of the flavor's disk,
	// which some flavors lack and others have too small. Nova fills it with the
	// image, and it goes when the server goes.
	VolumeSize int `json:"volume_size"`

	// Which type of volume Cinder makes for `server.volume_size`. Clouds older
	// than microversion 2.67 of Nova cannot choose.
	VolumeType string `json:"volume_type"`

	// Names or IDs.
	//
	// required
	Networks []string `json:"networks"`

	// Names or IDs.
	SecurityGroups []string `json:"security_groups"`

	// A Nova key pair of the user that the plugin authenticates as.
	KeyName string `json:"key_name"`

	// What cloud-init finds as user data. It is handed over unchanged, and
	// compressed only when it is above Nova's limit of 65,535 base64 characters
	// and cloud-init can read it so. Do not indent a cloud-config to fit the TOML
	// around it: those blanks would become part of it.
	UserData string `json:"user_data"`

	// Where to read user data from when the plugin starts, in place of
	// `server.user_data`; only one of the two may be set.
	UserDataFile string `json:"user_data_file"`

	// Whether servers find user data and metadata on a drive, as they must where
	// the cloud runs no metadata service.
	//
	// default: `false`
	ConfigDrive bool `json:"config_drive"`

	// Extra Nova tags, 49 at most, each 1 to 60 characters without `/` and `,`.
	Tags []string `json:"tags"`

	// Metadata that servers get, 126 entries at most. A key has 1 to 255 letters,
	// digits, blanks or any of `-_:.`, a value no more than 255 characters. The
	// keys `fleeting:group`, `fleeting:network` and `fleeting:platform` are the
	// plugin's own.
	Metadata map[string]string `json:"metadata"`

	// The zone that servers are put into; the cloud chooses one if it is not set.
	AvailabilityZone string `json:"availability_zone"`

	// A server group of Nova, by name or ID, whose members the servers become.
	// The quota `server_group_members` bounds how many fit, often 10, whatever
	// `max_instances` says. Under the policy `anti-affinity` no two share a host
	// and the cloud refuses what it has no host for; `soft-anti-affinity` only
	// tries.
	ServerGroup string `json:"server_group"`
}

// ConfigError lists everything that is wrong with a configuration.
type ConfigError struct {
	// Problems are in the order of the keys; never empty.
	Problems []Problem
}

// Problem is one mistake in a configuration.
type Problem struct {
	// Key is the setting, with its section: "server.image".
	Key string
	// Text says what is wrong and what would be right.
	Text string
}

// Error implements error: one line per problem.
func (e *ConfigError) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	if len(e.Problems) == 1 {
		return fmt.Sprintf("plugin_config: %s: %s", e.Problems[0].Key, e.Problems[0].Text)
	}
	lines = append(lines, fmt.Sprintf("plugin_config has %d mistakes:", len(e.Problems)))
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("  %s: %s", p.Key, p.Text))
	}
	return strings.Join(lines, "\n")
}

// problems collects mistakes.
type problems []Problem

func (p *problems) add(key, format string, args ...any) {
	*p = append(*p, Problem{key, fmt.Sprintf(format, args...)})
}

// err is nil when nothing was collected.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &ConfigError{p}
}

// Duration is a length of time that is written with its unit, such as "15m".
// In JSON it is a string; a bare number is refused, since nobody can tell
// whether it means seconds or nanoseconds.
type Duration time.Duration

// UnmarshalJSON reads what time.ParseDuration reads.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf(`must be a string with a unit, such as "15m" or "90s", not %s`, raw)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`%q is no duration; write a number and a unit, such as "15m" or "90s"`, text)
	}
	*d = Duration(parsed)
	return nil
}

// MarshalJSON writes the form that UnmarshalJSON reads.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// String returns the form that UnmarshalJSON reads.
func (d Duration) String() string { return time.Duration(d).String() }
