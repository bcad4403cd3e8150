//go:build e2eguest

package guest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/pelletier/go-toml/v2"
	"gitlab.com/gitlab-org/fleeting/fleeting"
	"gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/installer"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// What the end-to-end tests tell the guest.
const (
	// envPlugin is the plugin as config.toml names it: a reference or a path.
	envPlugin = "E2E_PLUGIN"
	// envConfig is a config.toml to read that from instead, and the plugin's own
	// configuration, all but the cloud.
	envConfig = "E2E_CONFIG"
	// envReadOnly asks for proof that the plugin cannot be changed.
	envReadOnly = "E2E_READ_ONLY"
)

// patience is for emulated processors.
const patience = 2 * time.Minute

func TestPluginServes(t *testing.T) {
	name, config := os.Getenv(envPlugin), map[string]any{"MaxSize": 2}
	if file := os.Getenv(envConfig); file != "" {
		name, config = configured(t, file)
	}
	path := lookUp(t, name)
	if os.Getenv(envReadOnly) != "" {
		mustNotBeWritable(t, path)
	}
	version := versionOf(t, path)
	if strings.Contains(version, "fleeting-plugin-openstack") {
		config = openStack(t, config)
	}
	drive(t, path, config)
	t.Logf("SERVED %s from %s on %s/%s by user %d", strings.Join(strings.Fields(version)[:4], " "), path, runtime.GOOS, runtime.GOARCH, os.Getuid())
}

// lookUp finds the plugin as the runner does.
func lookUp(t *testing.T, name string) string {
	t.Helper()
	if name == "" {
		t.Fatalf("neither %s nor %s is set", envPlugin, envConfig)
	}
	path, err := installer.LookPath(name, os.Getenv("FLEETING_PLUGIN_PATH"))
	if err != nil {
		t.Fatalf("the runner's look-up of %s in %s: %v", name, os.Getenv("FLEETING_PLUGIN_PATH"), err)
	}
	return path
}

// configured reads a config.toml, whose files must all be there for this user.
func configured(t *testing.T, file string) (name string, config map[string]any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Runners []struct {
			Autoscaler struct {
				Plugin    string         `toml:"plugin"`
				Config    map[string]any `toml:"plugin_config"`
				Connector struct {
					KeyPath string `toml:"key_path"`
				} `toml:"connector_config"`
			} `toml:"autoscaler"`
		} `toml:"runners"`
	}
	if err := toml.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Runners) != 1 {
		t.Fatalf("%s has %d runners, not one", file, len(all.Runners))
	}
	autoscaler := all.Runners[0].Autoscaler
	for _, named := range []any{autoscaler.Config["clouds_config"], autoscaler.Connector.KeyPath} {
		if _, err := os.ReadFile(fmt.Sprint(named)); err != nil {
			t.Errorf("what %s names: %v", file, err)
		}
	}
	return autoscaler.Plugin, autoscaler.Config
}

func mustNotBeWritable(t *testing.T, path string) {
	t.Helper()
	for _, name := range []string{path, filepath.Join(filepath.Dir(path), "new")} {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o755)
		if err == nil {
			_ = file.Close()
			t.Errorf("%s can be written by user %d", name, os.Getuid())
		}
	}
}

func versionOf(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), path, "version").CombinedOutput()
	if err != nil {
		t.Fatalf("%s version: %v\n%s", path, err, out)
	}
	return string(out)
}

// openStack starts a simulated cloud, and has a configuration be for it; if
// there is none yet, the least that the plugin wants.
func openStack(t *testing.T, config map[string]any) map[string]any {
	t.Helper()
	cloud, err := openstacksim.New(openstacksim.Options{BuildTime: -1, DeleteTime: -1})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(cloud)
	t.Cleanup(func() {
		server.Close()
		if err := cloud.Close(); err != nil {
			t.Error(err)
		}
	})
	clouds := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(clouds, cloud.CloudsYAML(server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	if config["server"] == nil {
		config = map[string]any{
			"name": "guest", "server": map[string]any{"flavor": "m1.small", "image": "Ubuntu 24.04", "networks": []string{"private"}},
		}
	}
	config["cloud"], config["clouds_config"] = openstacksim.CloudPassword, clouds
	return config
}

// drive takes the plugin through the life of one instance.
func drive(t *testing.T, path string, config map[string]any) {
	t.Helper()
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	logger := hclog.New(&hclog.LoggerOptions{Output: t.Output(), Level: hclog.Warn})
	runner, err := fleeting.RunPlugin(path, raw, fleeting.WithPluginLogger(logger))
	if err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	defer runner.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	group := runner.InstanceGroup()
	if _, err := group.Init(ctx, logger, provider.Settings{ConnectorConfig: provider.ConnectorConfig{Username: "runner"}}); err != nil {
		t.Fatalf("init: %v", err)
	}
	if n, err := group.Increase(ctx, 1); n != 1 || err != nil {
		t.Fatalf("increase: %d, %v", n, err)
	}
	id := await(ctx, t, group, func(states map[string]provider.State) string {
		for id, state := range states {
			if state == provider.StateRunning {
				return id
			}
		}
		return ""
	})
	if info, err := group.ConnectInfo(ctx, id); err != nil || info.ID != id {
		t.Errorf("connect info: %+v, %v", info, err)
	}
	if gone, err := group.Decrease(ctx, []string{id}); len(gone) != 1 || err != nil {
		t.Fatalf("decrease: %v, %v", gone, err)
	}
	await(ctx, t, group, func(states map[string]provider.State) string {
		if state, there := states[id]; !there || state == provider.StateDeleted {
			return "gone"
		}
		return ""
	})
	if err := group.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// await updates until done says something.
func await(ctx context.Context, t *testing.T, group provider.InstanceGroup, done func(map[string]provider.State) string) string {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		states := map[string]provider.State{}
		err := group.Update(ctx, func(id string, state provider.State) { states[id] = state })
		if err == nil {
			if found := done(states); found != "" {
				return found
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the plugin last reported %v: %v", states, errors.Join(err, ctx.Err()))
		case <-tick.C:
		}
	}
}
