package plugin

import (
	"cmp"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of Nova and of this plugin.
const (
	maxNameLength     = 54 // leaves a dash and 8 characters of 63
	maxTagLength      = 60
	maxTags           = 50
	maxMetadata       = 128
	maxMetadataLength = 255
	maxParallel       = 100
	maxCalls          = 1000

	defaultBuildTimeout  = Duration(15 * time.Minute)
	defaultDeleteTimeout = Duration(10 * time.Minute)
	// parallelStart is where creations and deletions begin whose number is not set;
	// fifty servers at 300 ms a call are then asked for in 1.2 s. A deletion costs
	// Nova less than a creation: it answers before the work.
	parallelStart = 10
	createsMost   = 20
	deletesMost   = 100

	tagPrefix = "fleeting:"
	// ownerKey is the metadata key of the owner mark; its value is the tag.
	// Nova's API can change a tag of any server, while both together with the
	// name are not written by accident.
	ownerKey = "fleeting:group"
	// processKey is the metadata key of the process that made the server.
	processKey = "fleeting:process"
	// platformKey and networkKey are for later processes: the platform of the
	// server, and the name of the network that it is reached on. They are written
	// where they are needed and there is room.
	platformKey = "fleeting:platform"
	networkKey  = "fleeting:network"
)

// ownKeys are the metadata keys of the plugin.
func ownKeys() []string { return []string{ownerKey, processKey, platformKey, networkKey} }

// setTextDefaults takes an empty text for one that is not set.
func (c *Config) setTextDefaults() {
	if c.Tag == "" && c.Name != "" {
		c.Tag = tagPrefix + c.Name
	}
	c.AddressFamily = cmp.Or(c.AddressFamily, "ipv4")
	if c.AuthFromEnv {
		c.Cloud = cmp.Or(c.Cloud, envCloud)
	}
}

// setNumberDefaults belongs before the decoding: a 0 that is written is a
// mistake, not a number that is not set.
func (c *Config) setNumberDefaults() {
	c.BuildTimeout = cmp.Or(c.BuildTimeout, defaultBuildTimeout)
	c.DeleteTimeout = cmp.Or(c.DeleteTimeout, defaultDeleteTimeout)
	c.MaxSize = cmp.Or(c.MaxSize, maxSize)
}

// validate checks everything that needs no cloud.
func (c *Config) validate(found *problems) {
	c.validateCloud(found)
	c.validateName(found)
	if !found.has("server") {
		c.Server.validate(c.Tag, found)
	}
	if c.AddressFamily != "ipv4" && c.AddressFamily != "ipv6" {
		found.add("address_family", "must be ipv4 or ipv6, not %q", c.AddressFamily)
	}
	c.validateAddressNetwork(found)
	if c.BuildTimeout <= 0 {
		found.add("build_timeout", "must be positive, not %s", c.BuildTimeout)
	}
	if c.DeleteTimeout <= 0 {
		found.add("delete_timeout", "must be positive, not %s", c.DeleteTimeout)
	}
	validateNumber(found, "max_parallel_creates", c.MaxParallelCreates, maxParallel)
	validateNumber(found, "max_parallel_deletes", c.MaxParallelDeletes, maxParallel)
	validateNumber(found, "max_calls_per_second", c.MaxCallsPerSecond, maxCalls)
	c.validateLimits(found)
}

// validateNumber checks a number that may be left out.
func validateNumber(found *problems, key string, n *int, most int) {
	if n != nil && !found.has(key) && (*n < 1 || *n > most) {
		found.add(key, "must be 1 to %d, not %d", most, *n)
	}
}

// validateLimits checks how many servers there may be, and where the locks are.
func (c *Config) validateLimits(found *problems) {
	if !found.has("max_size") && (c.MaxSize < 1 || c.MaxSize > maxSize) {
		found.add("max_size", "must be 1 to %d, not %d", maxSize, c.MaxSize)
	}
	if c.LockDir != "" && !filepath.IsAbs(c.LockDir) {
		found.add("lock_dir", "must be an absolute path, not %q", c.LockDir)
	}
}

// envCloud is what openstacksdk calls the cloud of the environment.
const envCloud = "envvars"

func (c *Config) validateCloud(found *problems) {
	switch {
	case !c.AuthFromEnv:
		require(found, "cloud", c.Cloud)
	case c.Cloud != envCloud:
		found.add("cloud", "is excluded by auth_from_env; remove one of them")
	case c.CloudsConfig != "":
		found.add("clouds_config", "is excluded by auth_from_env; remove one of them")
	}
}

func require(found *problems, key, value string) bool {
	if value == "" && !found.has(key) {
		found.add(key, "is required")
	}
	return value != ""
}

// has reports whether a key is wrong already, for example of the wrong type.
func (p problems) has(key string) bool {
	return slices.ContainsFunc(p, func(q Problem) bool { return q.Key == key })
}

var (
	// groupName becomes part of servers' names, which are host names.
	groupName = regexp.MustCompile(`^[a-z0-9-]+$`)
	// metadataKey is Nova's rule for the keys of a server's metadata.
	metadataKey = regexp.MustCompile(`^[a-zA-Z0-9\-_:. ]{1,255}$`)
)

func (c *Config) validateName(found *problems) {
	if !require(found, "name", c.Name) {
		return
	}
	defaultTag := c.Tag == tagPrefix+c.Name
	switch {
	case !groupName.MatchString(c.Name):
		found.add("name", "may have lowercase letters, digits and dashes only, not %q", c.Name)
	case len(c.Name) > maxNameLength:
		found.add("name", "has %d characters; %d are allowed", len(c.Name), maxNameLength)
	case defaultTag && len(c.Tag) > maxTagLength:
		found.add("name", "has %d characters; with the default tag %d are allowed: shorten it or set tag",
			len(c.Name), maxTagLength-len(tagPrefix))
	case !defaultTag:
		validateTag("tag", c.Tag, found)
	}
}

func validateTag(key, tag string, found *problems) {
	switch length := utf8.RuneCountInString(tag); {
	case length < 1 || length > maxTagLength:
		found.add(key, "must have 1 to %d characters, not %d", maxTagLength, length)
	case strings.ContainsAny(tag, "/,"):
		found.add(key, "may not have a / or a comma: %q", tag)
	}
}

func (c *Config) validateAddressNetwork(found *problems) {
	switch {
	case c.AddressNetwork == "" && len(c.Server.Networks) > 1:
		found.add("address_network", "is required when servers are on several networks; choose one of %s",
			strings.Join(c.Server.Networks, ", "))
	case c.AddressNetwork != "" && len(c.Server.Networks) == 0:
		found.add("address_network", "must be one of server.networks, which is empty")
	}
	// Whether it is one of them shows only when names are resolved to IDs.
}

func (s *ServerConfig) validate(groupTag string, found *problems) {
	require(found, "server.flavor", s.Flavor)
	require(found, "server.image", s.Image)
	s.validateNetworks(found)
	if s.VolumeSize < 0 {
		found.add("server.volume_size", "must be positive, not %d", s.VolumeSize)
	}
	if s.VolumeType != "" && s.VolumeSize == 0 {
		found.add("server.volume_type", "needs server.volume_size")
	}
	if s.UserData != "" && s.UserDataFile != "" {
		found.add("server.user_data_file", "excludes server.user_data; set one of them")
	}
	if strings.Contains(s.AvailabilityZone, ":") {
		found.add("server.availability_zone", "may not name a host: only administrators may, so leave %q out",
			s.AvailabilityZone[strings.Index(s.AvailabilityZone, ":"):])
	}
	s.validateTags(groupTag, found)
	s.validateMetadata(found)
}

func (s *ServerConfig) validateNetworks(found *problems) {
	if len(s.Networks) == 0 && !found.has("server.networks") {
		found.add("server.networks", "is required")
	}
	validateNames("server.networks", s.Networks, found)
	validateNames("server.security_groups", s.SecurityGroups, found)
}

// validateNames refuses empty and repeated names.
func validateNames(key string, names []string, found *problems) {
	seen := map[string]bool{}
	for _, name := range names {
		switch {
		case name == "":
			found.add(key, "has an empty name")
		case seen[name]:
			found.add(key, "has %q twice", name)
		}
		seen[name] = true
	}
}

func (s *ServerConfig) validateTags(groupTag string, found *problems) {
	if len(s.Tags) > maxTags-1 {
		found.add("server.tags", "has %d tags; %d are allowed beside the group's own", len(s.Tags), maxTags-1)
	}
	validateNames("server.tags", s.Tags, found)
	for _, tag := range s.Tags {
		if tag == groupTag {
			found.add("server.tags", "has the group's own tag %q, which servers get anyway", tag)
		}
		if tag != "" {
			validateTag("server.tags", tag, found)
		}
	}
}

func (s *ServerConfig) validateMetadata(found *problems) {
	if most := maxMetadata - 2; len(s.Metadata) > most { // with owner and process
		found.add("server.metadata", "has %d entries; %d are allowed", len(s.Metadata), most)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
		if !metadataKey.MatchString(key) {
			found.add("server.metadata", "key %q must have 1 to 255 letters, digits, spaces or any of -_:.", key)
		}
		if length := utf8.RuneCountInString(s.Metadata[key]); length > maxMetadataLength {
			found.add("server.metadata", "the value of %q has %d characters; %d are allowed", key, length, maxMetadataLength)
		}
		if slices.Contains(ownKeys(), key) {
			found.add("server.metadata", "key %q is the plugin's own", key)
		}
	}
}
