package plugin

import (
	"fmt"
	"strings"
)

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
