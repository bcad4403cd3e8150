package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"
)

// Group is a group of servers. Its exported fields are the keys of plugin_config
// in the runner's config.toml.
//
// The servers of this one exist in memory only: put the calls of your provider
// where they are made, listed and deleted.
type Group struct {
	// Name begins the names of the servers, and tells groups apart.
	Name string `json:"name"`
	// MaxSize bounds the group; 0 means 10.
	MaxSize int `json:"max_size"`

	logger   hclog.Logger
	settings provider.Settings

	mu      sync.Mutex
	servers map[string]provider.State
}

var _ provider.InstanceGroup = (*Group)(nil)

// Init checks the configuration. It runs once, before everything else.
func (g *Group) Init(_ context.Context, logger hclog.Logger, settings provider.Settings) (provider.ProviderInfo, error) {
	if g.Name == "" {
		return provider.ProviderInfo{}, errors.New("plugin_config: name is missing")
	}
	if g.MaxSize == 0 {
		g.MaxSize = 10
	}
	g.logger, g.settings, g.servers = logger, settings, map[string]provider.State{}
	return provider.ProviderInfo{ID: "acme/" + g.Name, MaxSize: g.MaxSize, Version: version, BuildInfo: revision}, nil
}

// Update reports every server of the group, each time: one that is left out is
// taken for gone, and its job is cancelled.
func (g *Group) Update(_ context.Context, report func(id string, state provider.State)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, state := range g.servers {
		report(id, state)
		if state == provider.StateCreating {
			g.servers[id] = provider.StateRunning
		}
		if state == provider.StateDeleting {
			delete(g.servers, id)
		}
	}
	return nil
}

// Increase asks for n more servers and says how many are on their way. Some and
// an error is lost on the way to the runner: report the error only for none.
func (g *Group) Increase(_ context.Context, n int) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	made := 0
	for ; made < n && len(g.servers) < g.MaxSize; made++ {
		id := g.Name + "-" + strings.ToLower(rand.Text()[:8])
		g.servers[id] = provider.StateCreating
		g.logger.Info("creating", "server", id)
	}
	if made == 0 && n > 0 {
		return 0, fmt.Errorf("the group has %d servers already", len(g.servers))
	}
	return made, nil
}

// Decrease asks for servers to be deleted, and returns those that will be.
func (g *Group) Decrease(_ context.Context, ids []string) ([]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var accepted []string
	for _, id := range ids {
		if _, ok := g.servers[id]; ok {
			g.servers[id] = provider.StateDeleting
			g.logger.Info("deleting", "server", id)
		}
		accepted = append(accepted, id) // what is gone need not be deleted
	}
	return accepted, nil
}

// ConnectInfo says how to reach a server.
func (g *Group) ConnectInfo(_ context.Context, id string) (provider.ConnectInfo, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.servers[id] != provider.StateRunning {
		return provider.ConnectInfo{}, fmt.Errorf("server %s is not running", id)
	}
	return provider.ConnectInfo{
		ConnectorConfig: g.settings.ConnectorConfig, ID: id,
		ExternalAddr: "127.0.0.1", InternalAddr: "127.0.0.1",
	}, nil
}

// Heartbeat says whether a server is still fit for jobs.
func (g *Group) Heartbeat(_ context.Context, id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if state, ok := g.servers[id]; !ok || !slices.Contains([]provider.State{provider.StateCreating, provider.StateRunning}, state) {
		return fmt.Errorf("server %s is gone", id)
	}
	return nil
}

// Suspend is not offered, and neither is Resume.
func (*Group) Suspend(context.Context, []string) ([]string, error) {
	return nil, errors.ErrUnsupported
}

// Resume is the reverse of Suspend.
func (*Group) Resume(context.Context, []string) ([]string, error) {
	return nil, errors.ErrUnsupported
}

// Shutdown leaves the servers alone: whether they go is the runner's decision.
func (*Group) Shutdown(context.Context) error { return nil }
