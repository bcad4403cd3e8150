package cloud

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// entryError says everything that is wrong with an entry.
type entryError struct {
	from, cloud string
	wrong       []string
}

// Error implements error, on one line.
func (e *entryError) Error() string {
	if len(e.wrong) == 1 {
		return fmt.Sprintf("%s: cloud %q: %s", e.from, e.cloud, e.wrong[0])
	}
	return fmt.Sprintf("%s: cloud %q has %d mistakes: %s", e.from, e.cloud, len(e.wrong), strings.Join(e.wrong, "; "))
}

// readEntry reads one entry, with what secure.yaml adds to it and what the profile
// that it names lies under it.
func (m *mistakes) readEntry(files cloudsFiles, name string) (map[string]any, error) {
	clouds, err := readClouds(files.clouds, "clouds")
	if err != nil {
		return nil, err
	}
	entry, ok := clouds[name]
	if !ok {
		known := slices.Sorted(maps.Keys(clouds))
		return nil, fmt.Errorf("%s: no cloud %q; it has: %s", files.clouds, name, strings.Join(known, ", "))
	}
	if files.secure != "" {
		secure, err := readClouds(files.secure, "clouds")
		if err != nil {
			return nil, err
		}
		entry = overlay(entry, secure[name])
	}
	return m.withProfile(files, name, entry)
}

// withProfile lays an entry over the vendor profile that it names.
func (m *mistakes) withProfile(files cloudsFiles, name string, entry map[string]any) (map[string]any, error) {
	profile := text(entry, "profile")
	if profile == "" {
		profile = text(entry, "cloud")
	}
	if profile == "" {
		return entry, nil
	}
	var public map[string]map[string]any
	if files.public != "" {
		var err error
		if public, err = readClouds(files.public, "public-clouds"); err != nil {
			return nil, err
		}
	}
	base, ok := public[profile]
	auth, _ := entry["auth"].(map[string]any)
	switch {
	case !ok && auth["auth_url"] == nil:
		return nil, fmt.Errorf("%s: cloud %q: profile %q is not in clouds-public.yaml beside it; write auth_url and the rest into the entry",
			files.clouds, name, profile)
	case !ok:
		m.remark("profile %q is not in clouds-public.yaml beside it, and adds nothing; those that openstacksdk brings are not known here", profile)
	}
	return overlay(base, entry), nil
}

// readClouds reads a file of the clouds.yaml family into plain maps.
func readClouds(path, key string) (map[string]map[string]any, error) {
	content, err := readConfig(path)
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
		clouds[name] = underscored(section)
	}
	return clouds, nil
}

// underscored writes keys as openstacksdk reads them, with _ for -.
func underscored(section map[string]any) map[string]any {
	written := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(section)) {
		value := section[key]
		if inner, ok := value.(map[string]any); ok {
			value = underscored(inner)
		}
		written[strings.ReplaceAll(key, "-", "_")] = value
	}
	return written
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

// text is the first of some keys that has a text; empty for any other value.
func text(section map[string]any, names ...string) string {
	for _, name := range names {
		if value, _ := section[name].(string); value != "" {
			return value
		}
	}
	return ""
}

// envCloud is what openstacksdk calls the cloud of the environment.
const envCloud = "envvars"

// entryFromEnv makes an entry of the variables that begin with OS_, one for each
// key; ok is false if none says where to log in.
func entryFromEnv(lookupEnv func(string) (string, bool)) (entry map[string]any, ok bool) {
	entry, auth := map[string]any{}, map[string]any{}
	for name, key := range knownKeys() {
		section, variable := entry, name
		if inAuth, isAuth := strings.CutPrefix(name, "auth."); isAuth {
			section, variable = auth, inAuth
		}
		value := env(lookupEnv, "OS_"+strings.ToUpper(variable))
		if value == "" || key.kind == kindSection || key.kind == kindList || key.use == unused {
			continue
		}
		section[strings.TrimPrefix(name, "auth.")] = value
		if flag, isFlag := flags()[strings.ToLower(value)]; key.kind == kindFlag && isFlag {
			section[name] = flag
		}
	}
	entry["auth"] = auth
	return entry, auth["auth_url"] != nil
}

// flags are the spellings of a flag in a variable.
func flags() map[string]bool {
	return map[string]bool{"true": true, "1": true, "yes": true, "false": false, "0": false, "no": false}
}
