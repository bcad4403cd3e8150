package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// The second half of the story: the installed plugin at work.

// waitLimit is how long a server, or its end, may take.
const waitLimit = time.Minute

// script is what the demo's jobs run on their servers.
const script = `echo "hello from $HOSTNAME, a $(uname -s) machine"`

func (d *demo) startCloud(ctx context.Context) error {
	var err error
	d.cloud, err = startCloud(ctx, d.program("openstack-simulator"), d.path("cloud"), d.env)
	if err != nil {
		return err
	}
	if d.observer, err = observe(ctx, d.path("cloud"), d.cloud.name()); err != nil {
		return fmt.Errorf("logging in to the cloud: %w", err)
	}
	d.say("an OpenStack cloud in memory answers at %s", d.observer.keystone)
	d.say("its servers answer SSH on addresses of their own, 127.10.x.y, port %d", d.cloud.runner.Connector.ProtocolPort)
	return nil
}

func (d *demo) startRunner(ctx context.Context) error {
	var err error
	d.runner, err = startRunner(ctx, d.plugin, d.cloud.runner, d.logs)
	if err != nil {
		return err
	}
	d.say("fleeting runs %s", d.plugin)
	d.say("GitLab's task scaler asks it for servers: at most %d, none kept idle, one job each", maxServers)
	return nil
}

func (d *demo) runJobs(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	start := d.now()
	names := []string{"job-1", "job-2"}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		running := func(list []server) bool {
			up := 0
			for _, s := range list {
				if s.Status == "ACTIVE" {
					up++
				}
			}
			return up >= len(names)
		}
		return d.observer.watch(ctx, d.reportSince(start), running)
	})
	for _, name := range names {
		group.Go(func() error {
			done, err := d.runner.run(ctx, name, script, d.now)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			d.say("%s waited %s for %s at %s, and ran a command over SSH in %s:\n  %s",
				name, rounded(done.waited), done.server, done.address, rounded(done.ran), done.output)
			if want := "hello from " + done.server; len(done.output) < len(want) || done.output[:len(want)] != want {
				return fmt.Errorf("%s: the server said %q, and not %q", name, done.output, want)
			}
			return nil
		})
	}
	return group.Wait()
}

func (d *demo) scaleToZero(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	err := d.observer.watch(ctx, d.reportSince(d.now()), func(list []server) bool { return len(list) == 0 })
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("servers are left: %w", err)
	}
	if err != nil {
		return err
	}
	d.say("the cloud has no server left, and nothing to pay")
	return nil
}

// reportSince tells of each change of a server, with the time since start.
func (d *demo) reportSince(start time.Time) func(server) {
	return func(s server) { d.say("%6s  %s %s", rounded(d.now().Sub(start)), s.Name, s.Status) }
}
