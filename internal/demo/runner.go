package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"gitlab.com/gitlab-org/fleeting/fleeting"
	"gitlab.com/gitlab-org/fleeting/fleeting/connector"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"
	"gitlab.com/gitlab-org/fleeting/taskscaler"
)

// runner does what GitLab Runner's autoscaler does, with the same libraries:
// it runs the plugin as a process of its own, asks its task scaler for a
// server for each job, and runs the job over SSH.
type runner struct {
	plugin *fleeting.Runner
	scaler taskscaler.Taskscaler
}

// A quick loop, so that the demo does not wait for the runner's minutes.
const (
	maxServers    = 3
	pollInterval  = 250 * time.Millisecond
	idleTime      = time.Second
	connectLimit  = 30 * time.Second
	startLimit    = time.Minute
	shutdownLimit = time.Minute
)

// startRunner starts the plugin at path. What the plugin and the libraries log
// goes to logs.
func startRunner(ctx context.Context, path string, config runnerConfig, logs io.Writer) (*runner, error) {
	pluginConfig, err := json.Marshal(config.Plugin)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(config.Connector.KeyPath)
	if err != nil {
		return nil, err
	}
	logger := hclog.New(&hclog.LoggerOptions{Name: "runner", Level: hclog.Info, Output: logs})
	plugin, err := fleeting.RunPlugin(path, pluginConfig, fleeting.WithPluginLogger(logger))
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	scaler, err := taskscaler.New(ctx, plugin.InstanceGroup(),
		taskscaler.WithLogger(logger),
		taskscaler.WithMaxInstances(maxServers),
		taskscaler.WithCapacityPerInstance(1),
		taskscaler.WithMaxUseCount(1),
		taskscaler.WithAcquireDelay(pollInterval),
		taskscaler.WithUpdateInterval(time.Second),
		taskscaler.WithUpdateIntervalWhenExpecting(pollInterval),
		taskscaler.WithDeleteInstancesOnShutdown(),
		taskscaler.WithShutdownDeletionInterval(time.Second),
		taskscaler.WithInstanceGroupSettings(provider.Settings{ConnectorConfig: provider.ConnectorConfig{
			Protocol:             provider.ProtocolSSH,
			ProtocolPort:         config.Connector.ProtocolPort,
			Username:             config.Connector.Username,
			Key:                  key,
			UseStaticCredentials: config.Connector.UseStaticCredentials,
			Timeout:              connectLimit,
		}}))
	if err != nil {
		plugin.Kill()
		return nil, fmt.Errorf("starting the task scaler: %w", err)
	}
	r := &runner{plugin: plugin, scaler: scaler}
	if err := scaler.ConfigureSchedule(taskscaler.Schedule{IdleCount: 0, IdleTime: idleTime}); err != nil {
		return nil, errors.Join(err, r.close(ctx))
	}
	return r, nil
}

// job is what came of running a command on a server.
type job struct {
	name, server, address string
	waited, ran           time.Duration
	output                string
}

// run waits for a server for the job, and runs script on it.
func (r *runner) run(ctx context.Context, name, script string, now func() time.Time) (job, error) {
	start := now()
	acquired, err := r.scaler.Acquire(ctx, name)
	if err != nil {
		return job{}, fmt.Errorf("waiting for a server: %w", err)
	}
	defer r.scaler.Release(name)
	info, err := acquired.InstanceConnectInfo(ctx)
	if err != nil {
		return job{}, fmt.Errorf("asking how to connect to %s: %w", acquired.InstanceID(), err)
	}
	done := job{name: name, server: acquired.InstanceID(), address: info.InternalAddr, waited: now().Sub(start)}
	start = now()
	var stdout, stderr bytes.Buffer
	err = connector.Run(ctx, info, connector.ConnectorOptions{
		RunOptions: connector.RunOptions{Command: script, Stdout: &stdout, Stderr: &stderr},
	})
	done.ran = now().Sub(start)
	done.output = strings.TrimSpace(stdout.String())
	if err != nil {
		return done, fmt.Errorf("running a command on %s: %w: %s", done.server, err, strings.TrimSpace(stderr.String()))
	}
	acquired.HealthSuccess()
	return done, nil
}

// close shuts the scaler and the plugin down, as the runner does when it ends.
func (r *runner) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	r.scaler.Shutdown(ctx)
	r.plugin.Kill()
	return ctx.Err()
}
