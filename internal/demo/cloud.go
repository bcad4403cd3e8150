package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// stopGrace is how long a process may take to end when asked to.
const stopGrace = 10 * time.Second

// cloud is a running openstack-simulator, and what it wrote for a runner.
type cloud struct {
	process *exec.Cmd
	runner  runnerConfig
}

// runnerConfig is the part of a runner's config.toml that the simulator writes
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
	if err := c.read(stdout, filepath.Join(dir, "config.toml")); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// read waits for the simulator's first line, before which it listens and has
// written its files, and reads what it wrote for the runner.
func (c *cloud) read(greeting io.Reader, file string) error {
	lines := bufio.NewReader(greeting)
	if _, err := lines.ReadString('\n'); err != nil {
		return fmt.Errorf("the simulator said nothing: %w", err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var config struct {
		Runners []struct {
			Autoscaler runnerConfig `toml:"autoscaler"`
		} `toml:"runners"`
	}
	if err := toml.Unmarshal(content, &config); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(config.Runners) != 1 {
		return fmt.Errorf("%s: %d entries", file, len(config.Runners))
	}
	c.runner = config.Runners[0].Autoscaler
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
