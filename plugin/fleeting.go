package plugin

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// Update reports every instance of the group once, from one listing of its
// servers.
func (g *InstanceGroup) Update(ctx context.Context, report func(instance string, state provider.State)) (err error) {
	defer guard("Update", g.logger(), &err)
	state, err := g.ready()
	if err != nil {
		return err
	}
	state.owner.renew()
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	return state.group.Update(ctx, func(name string, s fleet.State) { report(name, provider.State(s)) })
}

// Increase has up to n servers created in the background and returns how many
// it took on, at once and never with an error: gRPC would drop the number.
func (g *InstanceGroup) Increase(_ context.Context, n int) (succeeded int, err error) {
	defer guard("Increase", g.logger(), &err)
	state, err := g.ready()
	if err != nil {
		return 0, err
	}
	if !state.cloud.supply.ready() {
		return 0, nil
	}
	return state.group.Increase(n), nil
}

// Decrease has servers deleted in the background, until each is gone.
func (g *InstanceGroup) Decrease(_ context.Context, instances []string) (succeeded []string, err error) {
	defer guard("Decrease", g.logger(), &err)
	state, err := g.ready()
	if err != nil {
		return nil, err
	}
	return state.group.Decrease(instances), nil
}

// ConnectInfo tells how to connect to a running server, from the last listing:
// it makes no API call, so that it cannot fail while the API does.
func (g *InstanceGroup) ConnectInfo(_ context.Context, instance string) (info provider.ConnectInfo, err error) {
	defer guard("ConnectInfo", g.logger(), &err)
	state, err := g.ready()
	if err != nil {
		return info, err
	}
	server, err := state.group.Server(instance)
	if err != nil {
		return info, fmt.Errorf("instance %s: %w", instance, err)
	}
	internal, external := pick(server.Addresses, state.cloud.config.ipv6())
	if internal == "" {
		return info, fmt.Errorf("instance %s: no address to connect to", instance)
	}
	info = provider.ConnectInfo{
		ConnectorConfig: state.cloud.supply.images.platform(server).complete(state.connector),
		ID:              instance, InternalAddr: internal, ExternalAddr: external,
	}
	if external == "" {
		info.ExternalAddr = internal
		if age := time.Since(server.Created); age < lateAddress {
			// Not while the runner may be trying this answer: it gives servers up
			// whose answer expires before it got through.
			expires := time.Now().Add(cmp.Or(state.connector.Timeout, connectTimeout) + time.Minute)
			info.Expires = &expires
		}
	}
	return info, nil
}

// Heartbeat fails when a server is gone or no longer running, and not when the
// API call that would tell fails.
func (g *InstanceGroup) Heartbeat(ctx context.Context, instance string) (err error) {
	defer guard("Heartbeat", g.logger(), &err)
	state, err := g.ready()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	if err := state.group.Check(ctx, instance); err != nil {
		return fmt.Errorf("%w: instance %s: %w", provider.ErrInstanceUnhealthy, instance, err)
	}
	return nil
}

// Suspend is not supported; the plugin does not declare the capability.
func (g *InstanceGroup) Suspend(context.Context, []string) ([]string, error) {
	return nil, provider.ErrSuspendResumeNotSupported
}

// Resume is not supported; the plugin does not declare the capability.
func (g *InstanceGroup) Resume(context.Context, []string) ([]string, error) {
	return nil, provider.ErrSuspendResumeNotSupported
}

// Shutdown waits for the calls under way and ends. Servers go on running: the
// runner deletes them first when it is told to.
func (g *InstanceGroup) Shutdown(ctx context.Context) (err error) {
	defer guard("Shutdown", g.logger(), &err)
	g.mu.Lock()
	state := g.state
	g.state = nil
	g.mu.Unlock()
	if state == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	state.group.Shutdown(ctx)
	state.stop()
	return nil
}
