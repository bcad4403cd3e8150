// Command oldhost drives a plugin as an old runner does: with the version of
// fleeting that GitLab Runner 17.9 carries. It creates a server, runs a
// command on it, and deletes it.
//
// It is a module of its own, for a module has one version of a library.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting"
	"gitlab.com/gitlab-org/fleeting/fleeting/connector"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: oldhost PLUGIN CONFIG-JSON SSH-PORT")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := drive(ctx, os.Args[1], []byte(os.Args[2]), os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "oldhost:", err)
		os.Exit(1)
	}
}

func drive(ctx context.Context, plugin string, config []byte, port string) error {
	if !json.Valid(config) {
		return errors.New("the configuration is not JSON")
	}
	runner, err := fleeting.RunPlugin(plugin, config)
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	defer runner.Kill()
	provisioner, err := fleeting.Init(ctx, nil, runner.InstanceGroup(),
		fleeting.WithMaxSize(2), fleeting.WithUpdateInterval(time.Second), fleeting.WithUpdateIntervalWhenExpecting(200*time.Millisecond),
		fleeting.WithInstanceGroupSettings(provider.Settings{ConnectorConfig: provider.ConnectorConfig{
			Username: "runner", Password: "secret", UseStaticCredentials: true, Timeout: 10 * time.Second,
		}}))
	if err != nil {
		return fmt.Errorf("initialising: %w", err)
	}
	defer provisioner.Shutdown(ctx)

	provisioner.Request(1)
	instance, err := running(ctx, provisioner)
	if err != nil {
		return err
	}
	if err := runCommand(ctx, instance, port); err != nil {
		return fmt.Errorf("running a command on %s: %w", instance.ID(), err)
	}
	instance.Delete()
	return wait(ctx, "the deletion", func() bool { return len(provisioner.Instances()) == 0 })
}

// running waits until an instance runs.
func running(ctx context.Context, p *fleeting.Provisioner) (found fleeting.Instance, err error) {
	err = wait(ctx, "a running server", func() bool {
		for _, instance := range p.Instances() {
			if instance.State() == provider.StateRunning {
				found = instance
			}
		}
		return found != nil
	})
	return found, err
}

// runCommand connects over SSH, at another port than this version knows.
func runCommand(ctx context.Context, instance fleeting.Instance, port string) error {
	info, err := instance.ConnectInfo(ctx)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = connector.Run(ctx, info, connector.ConnectorOptions{
		RunOptions: connector.RunOptions{Command: "echo hello", Stdout: &out, Stderr: os.Stderr},
		// This version always dials port 22, which needs root to listen on.
		DialOptions: connector.DialOptions{DialFn: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(host, port))
		}},
	})
	if err == nil && !strings.Contains(out.String(), "hello") {
		err = fmt.Errorf("it said %q", out.String())
	}
	return err
}

func wait(ctx context.Context, what string, done func() bool) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}
