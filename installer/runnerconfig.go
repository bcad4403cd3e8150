package installer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

// ConfigPlugin is a plugin that an entry of the runner's config.toml names.
type ConfigPlugin struct {
	// Runner is the name of the [[runners]] entry.
	Runner string `json:"runner"`
	// Text is the value of plugin in [runners.autoscaler].
	Text string `json:"plugin"`
	// Reference is the value, if it is one.
	Reference Reference `json:"reference,omitzero"`
	// Local says that the value is a path, or a bare name that the runner looks
	// for in PATH, and so nothing to install.
	Local bool `json:"local,omitempty"`
}

// ParseRunnerConfig gives the plugins that a config.toml names, in its order.
// Everything else in the file is passed over: it belongs to the runner. Entries
// without an autoscaler name none. Errors match [ErrInvalid] (runner-config) or
// [ErrInvalid] (reference).
func ParseRunnerConfig(content []byte) ([]ConfigPlugin, error) {
	var file struct {
		Runners []struct {
			Name       string `toml:"name"`
			Autoscaler *struct {
				Plugin string `toml:"plugin"`
			} `toml:"autoscaler"`
		} `toml:"runners"`
	}
	content, err := textfile.UTF8(content)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInvalidConfig, err)
	}
	if err := toml.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("%w: %w", errInvalidConfig, readable(err))
	}
	var plugins []ConfigPlugin
	var problems []error
	for _, runner := range file.Runners {
		if runner.Autoscaler == nil || runner.Autoscaler.Plugin == "" {
			continue
		}
		plugin := ConfigPlugin{Runner: runner.Name, Text: runner.Autoscaler.Plugin}
		if isLocal(plugin.Text) {
			plugin.Local = true
			plugins = append(plugins, plugin)
			continue
		}
		ref, err := ParseReference(plugin.Text)
		if err != nil {
			problems = append(problems, fmt.Errorf("runner %q: %w", runner.Name, err))
			continue
		}
		plugin.Reference = ref
		plugins = append(plugins, plugin)
	}
	return plugins, errors.Join(problems...)
}

// isLocal knows the values that the runner does not take from its folder.
func isLocal(text string) bool {
	return places.IsPath(text) || !strings.ContainsAny(text, "/:@") && strings.HasPrefix(text, "fleeting-plugin-")
}

// References gives each reference of the plugins once, in their order.
func References(plugins []ConfigPlugin) []Reference {
	var refs []Reference
	seen := map[string]bool{}
	for _, p := range plugins {
		if p.Local || seen[p.Reference.String()] {
			continue
		}
		seen[p.Reference.String()] = true
		refs = append(refs, p.Reference)
	}
	return refs
}
