package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// runnerConfig is the part of a runner's config.toml that leads to the
// plugin's settings.
type runnerConfig struct {
	Runners []struct {
		Name       string         `toml:"name"`
		Autoscaler map[string]any `toml:"autoscaler"`
	} `toml:"runners"`
}

// settings are what a file says of the plugin.
type settings struct {
	plugin.Config

	// autoscaler is the section around plugin_config, and nil for a file that
	// is a plugin_config.
	autoscaler map[string]any
}

// readConfig reads the plugin's settings out of a runner's config.toml, or a
// JSON file that holds nothing else.
func readConfig(path, runner string) (settings, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return settings{}, fmt.Errorf("%w; name the runner's config.toml with --config", err)
	}
	if filepath.Ext(path) == ".json" {
		config, err := plugin.ParseConfig(content)
		return settings{Config: config}, err
	}
	var file runnerConfig
	if err := toml.Unmarshal(content, &file); err != nil {
		if mistake, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := mistake.Position()
			return settings{}, fmt.Errorf("%s:%d:%d: %w", path, line, column, err)
		}
		return settings{}, fmt.Errorf("%s: %w", path, err)
	}
	autoscaler, err := file.find(runner)
	if err != nil {
		return settings{}, fmt.Errorf("%s: %w", path, err)
	}
	// The runner hands the settings over as JSON, too.
	raw, err := json.Marshal(autoscaler["plugin_config"])
	if err != nil {
		return settings{}, fmt.Errorf("%s: %w", path, err)
	}
	config, err := plugin.ParseConfig(raw)
	if err != nil {
		err = errors.Join(err, plugin.Misplaced(autoscaler))
	}
	return settings{Config: config, autoscaler: autoscaler}, err
}

// find returns the [runners.autoscaler] of the one runner that uses this
// plugin, or of the one that is named.
func (f runnerConfig) find(name string) (map[string]any, error) {
	var (
		found []map[string]any
		names []string
	)
	for _, r := range f.Runners {
		uses, _ := r.Autoscaler["plugin"].(string)
		if r.Autoscaler["plugin_config"] == nil || name == "" && !strings.Contains(uses, "openstack") {
			continue
		}
		if name == "" || name == r.Name {
			found = append(found, r.Autoscaler)
		}
		names = append(names, r.Name)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("several runners use the plugin, choose one with --runner: %s", strings.Join(names, ", "))
	case name != "":
		return nil, fmt.Errorf("no runner named %q has a plugin_config; these do: %s", name, strings.Join(names, ", "))
	default:
		return nil, fmt.Errorf("no runner uses a plugin with openstack in its name; choose one with --runner")
	}
}
