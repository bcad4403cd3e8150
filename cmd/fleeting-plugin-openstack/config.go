package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// settings are what a file says of the plugin.
type settings struct {
	plugin.Config

	// raw is plugin_config as JSON, and mistakes what is wrong with it.
	raw      []byte
	mistakes error

	// entry is the one of the [[runners]] of a config.toml that uses the plugin; nil
	// for a file that is a plugin_config.
	entry map[string]any
}

// autoscaler is the section around plugin_config.
func (s settings) autoscaler() map[string]any { return section(s.entry, "autoscaler") }

// section is a table within another; nil if it is none.
func section(table map[string]any, key string) map[string]any {
	inner, _ := table[key].(map[string]any)
	return inner
}

// readConfig reads the plugin's settings out of a runner's config.toml, or a
// JSON file that holds nothing else.
func readConfig(path, runner string) (settings, error) {
	if filepath.Ext(path) == ".json" {
		return readPluginConfig(path)
	}
	_, entries, err := readEntries(path, runner)
	switch {
	case err != nil:
		return settings{}, err
	case len(entries) > 1:
		return settings{}, fmt.Errorf("%s: several runners use the plugin, choose one with --runner: %s", path, strings.Join(namesOf(entries), ", "))
	}
	read := settings{entry: entries[0]}
	// The runner hands the settings over as JSON, too.
	if read.raw, err = json.Marshal(read.autoscaler()["plugin_config"]); err != nil {
		return settings{}, fmt.Errorf("%s: %w", path, err)
	}
	if read.Config, err = plugin.ParseConfig(read.raw); err != nil {
		read.mistakes = errors.Join(plugin.Misplaced(read.autoscaler()), err)
	}
	return read, nil
}

// readPluginConfig reads a JSON file that is a plugin_config.
func readPluginConfig(path string) (settings, error) {
	content, err := textfile.Read(path)
	if err != nil {
		return settings{}, err
	}
	config, err := plugin.ParseConfig(content)
	return settings{Config: config, raw: content, mistakes: err}, nil
}

// readEntries reads a runner's config.toml and the entries of it that use the
// plugin: at least one, and all of them unless one is named.
func readEntries(path, runner string) (file map[string]any, entries []map[string]any, err error) {
	content, err := textfile.Read(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; name the runner's config.toml with --config", err)
	}
	if err := toml.Unmarshal(content, &file); err != nil {
		if mistake, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := mistake.Position()
			return nil, nil, fmt.Errorf("%s:%d:%d: %w", path, line, column, err)
		}
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	entries, err = findEntries(file, runner)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, entries, nil
}

// findEntries returns those of the [[runners]] that use this plugin, or the one
// that is named.
func findEntries(file map[string]any, name string) ([]map[string]any, error) {
	all, err := runnersOf(file)
	if err != nil {
		return nil, err
	}
	var found, configured []map[string]any
	for _, entry := range all {
		autoscaler := section(entry, "autoscaler")
		if autoscaler["plugin_config"] == nil {
			continue
		}
		its, _ := entry["name"].(string)
		configured = append(configured, entry)
		if name != "" && name == its || name == "" && usesPlugin(entry) {
			found = append(found, entry)
		}
	}
	choose := strings.Join(namesOf(configured), ", ")
	switch {
	case len(found) > 1 && name != "":
		return nil, fmt.Errorf("%d entries are named %q; give each a name of its own", len(found), name)
	case len(found) > 0:
		return found, nil
	case len(configured) == 0:
		return nil, errors.New("no [[runners]] entry in it has a section [runners.autoscaler.plugin_config]")
	case name != "":
		return nil, fmt.Errorf("no runner named %q has a plugin_config; these do: %s", name, choose)
	default:
		return nil, fmt.Errorf("no runner uses a plugin with openstack in its name; choose one with --runner: %s", choose)
	}
}

// usesPlugin tells whether an entry uses this plugin, by the name that it is
// published under.
func usesPlugin(entry map[string]any) bool {
	uses, _ := section(entry, "autoscaler")["plugin"].(string)
	return strings.Contains(uses, "openstack")
}

// namesOf are the names of entries, for people.
func namesOf(entries []map[string]any) []string {
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		name, _ := entry["name"].(string)
		names = append(names, name)
	}
	return names
}

// runnersOf gives the [[runners]] of a file.
func runnersOf(file map[string]any) ([]map[string]any, error) {
	switch runners := file["runners"].(type) {
	case nil:
		return nil, errors.New("there is no [[runners]] entry in it")
	case map[string]any:
		return nil, errors.New("[runners] must be written [[runners]]; the runner does not start with a single entry of that name")
	case []any:
		entries := make([]map[string]any, 0, len(runners))
		for _, runner := range runners {
			entry, ok := runner.(map[string]any)
			if !ok {
				return nil, errors.New("runners must be a list of [[runners]] sections")
			}
			entries = append(entries, entry)
		}
		return entries, nil
	default:
		return nil, errors.New("runners must be a list of [[runners]] sections")
	}
}
