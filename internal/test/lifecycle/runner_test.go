//go:build e2e

package lifecycle_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/reducedrunner"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
)

// TestPrepareRunner builds the runner for [TestRunner], as [TestPrepare] builds the
// rest. It is not a test.
func TestPrepareRunner(t *testing.T) {
	dir, platform := os.Getenv(prepareTo), os.Getenv(prepareFor)
	if dir == "" {
		return
	}
	module, err := filepath.Abs("../e2e/runner")
	if err != nil {
		t.Fatal(err)
	}
	args, err := reducedrunner.Prepare(t.Context(), module, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	system, arch, _ := strings.Cut(platform, "/")
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-o", filepath.Join(dir, named("gitlab-runner", platform))}, args...)...)
	cmd.Dir = module
	cmd.Env = append(append(os.Environ(), reducedrunner.Environment()...), "GOOS="+system, "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the runner: %v\n%s", err, out)
	}
}

// registryAddress is one without a port, under which the runner looks up no plugin,
// and one that the runner's library asks without TLS.
const registryAddress = "127.0.0.193:80"

// TestRunner has GitLab Runner, as far as its module can be had, bring the plugin
// from a registry, find what fleeting-plugin installed, and make a server with it.
func TestRunner(t *testing.T) {
	t.Parallel()
	l := &life{things: things(t), home: t.TempDir(), layouts: t.TempDir(), digests: map[string]string{}}
	l.registry = registrytest.New(t, registrytest.Listen(registryAddress)).Host + "/team/plugin"
	l.dir = filepath.Join(l.home, "fleeting", "plugins")
	if runtime.GOOS != "windows" {
		l.dir = filepath.Join(l.home, ".config", "fleeting", "plugins")
	}
	l.keys(t)
	l.pack(t)
	sim, err := openstacksim.New(openstacksim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cloud := httptest.NewServer(sim)
	t.Cleanup(cloud.Close)
	l.write(t, "clouds.yaml", string(sim.CloudsYAML(cloud.URL)))
	l.write(t, "config.toml", fmt.Sprintf(runnerConfig, l.registry+":"+versions[0], openstacksim.CloudPassword, l.at("clouds.yaml")))

	if out := l.runner(t, "fleeting", "install"); !strings.Contains(out, "team") {
		t.Errorf("fleeting install: %s", out)
	}
	l.listed(t)
	if err := os.RemoveAll(l.dir); err != nil {
		t.Fatal(err)
	}
	l.tool(t, "install", "--config", l.at("config.toml"), "--key", l.at("cosign.pub"), "--quiet")
	l.listed(t)
	l.makesServer(t, sim)
}

// runnerConfig keeps one server. The GitLab that it names refuses connections.
const runnerConfig = `concurrent = 1
check_interval = 1
[[runners]]
  name = "windows"
  url = "http://127.0.0.193:9"
  token = "glrt-e2e0123456789abcdef"
  executor = "instance"
  [runners.autoscaler]
    plugin = '%s'
    capacity_per_instance = 1
    max_use_count = 1
    max_instances = 1
    [runners.autoscaler.plugin_config]
      cloud = '%s'
      clouds_config = '%s'
      name = "runner"
      [runners.autoscaler.plugin_config.server]
        flavor = "m1.small"
        image = "Ubuntu 24.04"
        networks = ["private"]
    [runners.autoscaler.connector_config]
      username = "runner"
      password = "secret"
      use_static_credentials = true
    [[runners.autoscaler.policy]]
      idle_count = 1
      idle_time = "1h"
`

func (l *life) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(l.at(name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (l *life) runnerCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := l.command(ctx, args...)
	cmd.Path = filepath.Join(l.things, named("gitlab-runner", runtime.GOOS+"/"))
	for i, variable := range cmd.Env {
		if strings.HasPrefix(variable, "FLEETING_PLUGIN_PATH=") {
			cmd.Env[i] = "FLEETING_PLUGIN_PATH="
		}
	}
	return cmd
}

// runner runs a subcommand of a group that takes a configuration.
func (l *life) runner(t *testing.T, group, command string) string {
	t.Helper()
	out, err := l.runnerCommand(t.Context(), group, "--config", l.at("config.toml"), command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", group, command, err, out)
	}
	return string(out)
}

// listed holds that the runner finds the plugin where it was installed.
func (l *life) listed(t *testing.T) {
	t.Helper()
	out := l.runner(t, "fleeting", "list")
	if want := filepath.Join(versions[0], named("plugin", runtime.GOOS+"/")); !strings.Contains(out, want) {
		t.Errorf("fleeting list: %s; want %s", out, want)
	}
	t.Log(strings.TrimSpace(out))
}

// makesServer starts the runner until the plugin has made its idle server, and
// reinstalls the plugin meanwhile.
func (l *life) makesServer(t *testing.T, sim *openstacksim.Simulator) {
	t.Helper()
	cmd := l.runnerCommand(t.Context(), "run", "--config", l.at("config.toml"))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	// The plugin has the other end of the log until it has ended, too.
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	within := time.Now().Add(5 * time.Minute)
	for len(sim.Snapshot().Servers) == 0 && time.Now().Before(within) {
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // nothing says when the runner has made one
	}
	made := sim.Snapshot().Servers
	l.tool(t, "install", "--config", l.at("config.toml"), "--key", l.at("cosign.pub"), "--reinstall", "--quiet")
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // killed; it waits for the plugin, which ends by itself
	if len(made) == 0 {
		t.Fatalf("no server:\n%s", log.String())
	}
	t.Logf("the runner's plugin made %s", made[0].Name)
	l.prune(t)
}
