package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// stopGrace is how long a process may take to end when asked to.
const stopGrace = 10 * time.Second

// cloud is a running openstack-simulator, and what it says about itself.
type cloud struct {
	process *exec.Cmd
	url     string
	runner  runnerConfig
}

// runnerConfig is the part of a runner's config.toml that the simulator prints
// for its users.
type runnerConfig struct {
	// Plugin is plugin_config, given to the plugin as it is.
	Plugin map[string]any `toml:"plugin_config"`
	// Connector is connector_config.
	Connector struct {
		Username             string `toml:"username"`
		ProtocolPort         int    `toml:"protocol_port"`
		KeyPath              string `toml:"key_path"`
		UseStaticCredentials bool   `toml:"use_static_credentials"`
	} `toml:"connector_config"`
}

// startCloud runs the simulator in dir and waits until it answers.
func startCloud(ctx context.Context, program, dir string, env []string) (*cloud, error) {
	cmd := exec.CommandContext(ctx, program, //nolint:gosec // built by this demo
		"--listen", "127.0.0.1:0", "--dir", dir, "--build-time", "2s", "--quiet")
	cmd.Env = env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &cloud{process: cmd}
	if err := c.read(stdout); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// read takes the address and the lines of config.toml out of the simulator's
// greeting. The greeting is written before the simulator serves, but after it
// listens, so that a connection made now is answered.
func (c *cloud) read(greeting io.Reader) error {
	var config strings.Builder
	in := false
	lines := bufio.NewScanner(greeting)
	for lines.Scan() {
		line := lines.Text()
		if c.url == "" {
			_, rest, _ := strings.Cut(line, "http://")
			address, _, _ := strings.Cut(rest, " ")
			c.url = "http://" + address
		}
		if strings.Contains(line, "[runners.autoscaler.plugin_config]") {
			in = true
		}
		if in && strings.TrimSpace(line) == "" {
			break
		}
		if in {
			config.WriteString(line + "\n")
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	var file struct {
		Runners struct {
			Autoscaler runnerConfig `toml:"autoscaler"`
		} `toml:"runners"`
	}
	if err := toml.Unmarshal([]byte(config.String()), &file); err != nil {
		return fmt.Errorf("reading the simulator's config.toml: %w", err)
	}
	c.runner = file.Runners.Autoscaler
	if c.runner.Plugin == nil || c.runner.Connector.KeyPath == "" {
		return errors.New("the simulator ended, or said nothing of config.toml")
	}
	go func() { _, _ = io.Copy(io.Discard, greeting) }()
	return nil
}

// name is that of the entry in clouds.yaml.
func (c *cloud) name() string {
	name, _ := c.runner.Plugin["cloud"].(string)
	return name
}

// stop asks the simulator to end and waits for it.
func (c *cloud) stop() error {
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return c.process.Wait()
}
