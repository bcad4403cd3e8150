package cloud

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// cloudsEntry is what this package reads of one entry of clouds.yaml. The
// format is openstacksdk's:
// https://docs.openstack.org/openstacksdk/latest/user/config/configuration.html
type cloudsEntry struct {
	Profile      string        `yaml:"profile"`
	Cloud        string        `yaml:"cloud"`
	Auth         *authEntry    `yaml:"auth"`
	AuthType     string        `yaml:"auth_type"`
	RegionName   string        `yaml:"region_name"`
	Regions      []regionEntry `yaml:"regions"`
	Interface    string        `yaml:"interface"`
	EndpointType string        `yaml:"endpoint_type"`
	Verify       *bool         `yaml:"verify"`
	CACert       string        `yaml:"cacert"`
	Cert         string        `yaml:"cert"`
	Key          string        `yaml:"key"`

	ComputeEndpoint string `yaml:"compute_endpoint_override"`
	NetworkEndpoint string `yaml:"network_endpoint_override"`
	ImageEndpoint   string `yaml:"image_endpoint_override"`
	VolumeEndpoint  string `yaml:"block_storage_endpoint_override"`
}

type authEntry struct {
	AuthURL           string `yaml:"auth_url"`
	Username          string `yaml:"username"`
	UserID            string `yaml:"user_id"`
	Password          string `yaml:"password"`
	ProjectName       string `yaml:"project_name"`
	ProjectID         string `yaml:"project_id"`
	TenantName        string `yaml:"tenant_name"`
	TenantID          string `yaml:"tenant_id"`
	UserDomainName    string `yaml:"user_domain_name"`
	UserDomainID      string `yaml:"user_domain_id"`
	ProjectDomainName string `yaml:"project_domain_name"`
	ProjectDomainID   string `yaml:"project_domain_id"`
	DomainName        string `yaml:"domain_name"`
	DomainID          string `yaml:"domain_id"`
	DefaultDomain     string `yaml:"default_domain"`

	ApplicationCredentialID     string `yaml:"application_credential_id"`
	ApplicationCredentialName   string `yaml:"application_credential_name"`
	ApplicationCredentialSecret string `yaml:"application_credential_secret"`
}

// regionEntry is a name, or a mapping that has one.
type regionEntry struct{ Name string }

// UnmarshalYAML reads both forms of a region.
func (r *regionEntry) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		r.Name = node.Value
		return nil
	}
	var long struct {
		Name string `yaml:"name"`
	}
	if err := node.Decode(&long); err != nil {
		return err
	}
	r.Name = long.Name
	return nil
}

// cloudsFiles finds clouds.yaml, and the secure.yaml and clouds-public.yaml
// that belong to it.
type cloudsFiles struct {
	clouds, secure, public string
	// read is their stamp from before they were read.
	read string
}

// findClouds looks at the given path, else in OS_CLIENT_CONFIG_FILE, else in
// the working directory, the user's configuration and /etc/openstack.
func findClouds(path string, lookupEnv func(string) (string, bool)) (cloudsFiles, error) {
	places := []string{path}
	if path == "" {
		places = standardPlaces(lookupEnv)
	}
	for _, place := range places {
		if _, err := os.Stat(place); err == nil {
			folder := filepath.Dir(place)
			return cloudsFiles{
				clouds: place,
				secure: filepath.Join(folder, "secure.yaml"),
				public: filepath.Join(folder, "clouds-public.yaml"),
			}, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return cloudsFiles{}, fmt.Errorf("clouds.yaml: %w", err)
		}
	}
	return cloudsFiles{}, fmt.Errorf("clouds.yaml: none at %s: %w", strings.Join(spelledOut(places), ", "), fs.ErrNotExist)
}

// spelledOut makes paths absolute: whoever reads the runner's log does not
// know its working directory.
func spelledOut(paths []string) []string {
	out := slices.Clone(paths)
	for i, path := range paths {
		if absolute, err := filepath.Abs(path); err == nil {
			out[i] = absolute
		}
	}
	return out
}

func standardPlaces(lookupEnv func(string) (string, bool)) []string {
	if path, ok := lookupEnv("OS_CLIENT_CONFIG_FILE"); ok && path != "" {
		return []string{path}
	}
	places := []string{"clouds.yaml"}
	if folder, ok := lookupEnv("XDG_CONFIG_HOME"); ok && folder != "" {
		places = append(places, filepath.Join(folder, "openstack", "clouds.yaml"))
	} else if home, ok := lookupEnv("HOME"); ok && home != "" {
		places = append(places, filepath.Join(home, ".config", "openstack", "clouds.yaml"))
	}
	return append(places, "/etc/openstack/clouds.yaml")
}

// readEntry reads one entry, with what secure.yaml adds to it and what the
// profile that it names lies under it.
func readEntry(files cloudsFiles, name string) (cloudsEntry, error) {
	clouds, err := readClouds(files.clouds, "clouds")
	if err != nil {
		return cloudsEntry{}, err
	}
	raw, ok := clouds[name]
	if !ok {
		known := slices.Sorted(maps.Keys(clouds))
		return cloudsEntry{}, fmt.Errorf("%s: no cloud %q; it has: %s", files.clouds, name, strings.Join(known, ", "))
	}
	secure, err := readClouds(files.secure, "clouds")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cloudsEntry{}, err
	}
	raw = overlay(raw, secure[name])
	if raw, err = withProfile(files, name, raw); err != nil {
		return cloudsEntry{}, err
	}
	return decodeEntry(files.clouds, name, raw)
}

// withProfile lays an entry over the vendor profile that it names.
func withProfile(files cloudsFiles, name string, raw map[string]any) (map[string]any, error) {
	profile, _ := raw["profile"].(string)
	if profile == "" {
		profile, _ = raw["cloud"].(string)
	}
	if profile == "" {
		return raw, nil
	}
	public, err := readClouds(files.public, "public-clouds")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	base, ok := public[profile]
	if auth, _ := raw["auth"].(map[string]any); !ok && auth["auth_url"] == nil {
		return nil, fmt.Errorf("%s: cloud %q: profile %q is not in %s; write auth_url and the rest into the entry",
			files.clouds, name, profile, files.public)
	}
	return overlay(base, raw), nil
}

// readClouds reads a file of the clouds.yaml family into plain maps.
func readClouds(path, key string) (map[string]map[string]any, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("clouds.yaml: %w", err)
	}
	return parseClouds(path, key, content)
}

func parseClouds(path, key string, content []byte) (map[string]map[string]any, error) {
	var document map[string]yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", path, withoutValues(err))
	}
	node, ok := document[key]
	if !ok {
		return nil, fmt.Errorf("%s: there is no %q at its top", path, key)
	}
	entries, err := (&yamlText{left: yamlNodes}).value(&node)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, withoutValues(err))
	}
	sections, ok := entries.(map[string]any)
	if !ok && entries != nil {
		return nil, fmt.Errorf("%s: %q %w", path, key, errYAMLSection)
	}
	clouds := map[string]map[string]any{}
	for name, content := range sections {
		section, isMap := content.(map[string]any)
		if !isMap && content != nil {
			return nil, fmt.Errorf("%s: %s.%s %w", path, key, name, errYAMLSection)
		}
		clouds[name] = section
	}
	return clouds, nil
}

// overlay lays top over base, mapping by mapping.
func overlay(base, top map[string]any) map[string]any {
	merged := maps.Clone(base)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range top {
		below, isMap := merged[key].(map[string]any)
		above, alsoMap := value.(map[string]any)
		if isMap && alsoMap {
			merged[key] = overlay(below, above)
		} else if value != nil {
			merged[key] = value
		}
	}
	return merged
}

func decodeEntry(path, name string, raw map[string]any) (cloudsEntry, error) {
	var entry cloudsEntry
	text, err := yaml.Marshal(raw)
	if err == nil {
		err = yaml.Unmarshal(text, &entry)
	}
	if err != nil {
		return cloudsEntry{}, fmt.Errorf("%s: cloud %q: a value has the wrong type: verify takes true or false, auth a section, regions a list, the rest text",
			path, name)
	}
	return entry, nil
}
