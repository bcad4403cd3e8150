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

	// file is the whole config.toml and entry the one of its [[runners]] that
	// uses the plugin; both are nil for a file that is a plugin_config.
	file, entry map[string]any
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
	content, err := textfile.Read(path)
	if err != nil {
		return settings{}, fmt.Errorf("%w; name the runner's config.toml with --config", err)
	}
	if filepath.Ext(path) == ".json" {
		config, err := plugin.ParseConfig(content)
		return settings{Config: config, raw: content, mistakes: err}, nil
	}
	var file map[string]any
	if err := toml.Unmarshal(content, &file); err != nil {
		if mistake, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := mistake.Position()
			return settings{}, fmt.Errorf("%s:%d:%d: %w", path, line, column, err)
		}
		return settings{}, fmt.Errorf("%s: %w", path, err)
	}
	entry, err := findEntry(file, runner)
	if err != nil {
		return settings{}, fmt.Errorf("%s: %w", path, err)
	}
	read := settings{file: file, entry: entry}
	// The runner hands the settings over as JSON, too.
	if read.raw, err = json.Marshal(read.autoscaler()["plugin_config"]); err != nil {
		return settings{}, fmt.Errorf("%s: %w", path, err)
	}
	if read.Config, err = plugin.ParseConfig(read.raw); err != nil {
		read.mistakes = errors.Join(plugin.Misplaced(read.autoscaler()), err)
	}
	return read, nil
}

// findEntry returns the one of the [[runners]] that uses this plugin, or the
// one that is named.
func findEntry(file map[string]any, name string) (map[string]any, error) {
	entries, err := runnersOf(file)
	if err != nil {
		return nil, err
	}
	var (
		found []map[string]any
		names []string // of those that have a plugin_config
	)
	for _, entry := range entries {
		autoscaler := section(entry, "autoscaler")
		if autoscaler["plugin_config"] == nil {
			continue
		}
		its, _ := entry["name"].(string)
		names = append(names, its)
		uses, _ := autoscaler["plugin"].(string)
		if name != "" && name == its || name == "" && strings.Contains(uses, "openstack") {
			found = append(found, entry)
		}
	}
	choose := strings.Join(names, ", ")
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1 && name != "":
		return nil, fmt.Errorf("%d entries are named %q; give each a name of its own", len(found), name)
	case len(found) > 1:
		return nil, fmt.Errorf("several runners use the plugin, choose one with --runner: %s", choose)
	case len(names) == 0:
		return nil, errors.New("no [[runners]] entry in it has a section [runners.autoscaler.plugin_config]")
	case name != "":
		return nil, fmt.Errorf("no runner named %q has a plugin_config; these do: %s", name, choose)
	default:
		return nil, fmt.Errorf("no runner uses a plugin with openstack in its name; choose one with --runner: %s", choose)
	}
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
