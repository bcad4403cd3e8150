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
		Name       string `toml:"name"`
		Autoscaler struct {
			Plugin string         `toml:"plugin"`
			Config map[string]any `toml:"plugin_config"`
		} `toml:"autoscaler"`
	} `toml:"runners"`
}

// readConfig reads the plugin's settings out of a runner's config.toml, or a
// JSON file that holds nothing else.
func readConfig(path, runner string) (plugin.Config, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return plugin.Config{}, err
	}
	if filepath.Ext(path) == ".json" {
		return plugin.ParseConfig(content)
	}
	var file runnerConfig
	if err := toml.Unmarshal(content, &file); err != nil {
		if mistake, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := mistake.Position()
			return plugin.Config{}, fmt.Errorf("%s:%d:%d: %w", path, line, column, err)
		}
		return plugin.Config{}, fmt.Errorf("%s: %w", path, err)
	}
	settings, err := file.find(runner)
	if err != nil {
		return plugin.Config{}, fmt.Errorf("%s: %w", path, err)
	}
	// The runner hands the settings over as JSON, too.
	raw, err := json.Marshal(settings)
	if err != nil {
		return plugin.Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return plugin.ParseConfig(raw)
}

// find returns the settings of the one runner that uses this plugin, or of the
// one that is named.
func (f runnerConfig) find(name string) (map[string]any, error) {
	var (
		found []map[string]any
		names []string
	)
	for _, r := range f.Runners {
		if r.Autoscaler.Config == nil || name == "" && !strings.Contains(r.Autoscaler.Plugin, "openstack") {
			continue
		}
		if name == "" || name == r.Name {
			found = append(found, r.Autoscaler.Config)
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
