package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/cloud"
	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

const (
	// maxSize is the most servers that a group may have; a setting can lower it.
	maxSize = 1000
	// updateTimeout bounds one Update. Everything else of the runner's loop
	// waits for it.
	updateTimeout = 50 * time.Second
	// heartbeatTimeout bounds the call of a heartbeat: a job waits for it.
	heartbeatTimeout = 5 * time.Second
	// lateAddress is how old a server may be whose floating address may still come.
	lateAddress = 15 * time.Minute
	// connectTimeout is the runner's, unless it is set.
	connectTimeout = 10 * time.Minute
	// shutdownTimeout bounds how long a shutdown goes on with deletions. The
	// runner ends the process when it does not want to wait any more.
	shutdownTimeout = 10 * time.Minute
)

// InstanceGroup is one group of servers, driven by fleeting. Its zero value is
// ready to be unmarshalled into and initialised. Every method recovers from
// panics: nothing restarts a plugin that dies.
type InstanceGroup struct {
	opts   options
	config Config

	mu    sync.Mutex
	state *running
}

var _ provider.InstanceGroup = (*InstanceGroup)(nil)

// running is what Init makes.
type running struct {
	group     *fleet.Group
	cloud     *openstack
	connector provider.ConnectorConfig
	owner     *ownership
	log       hclog.Logger
	stop      func() // ends the group's work and waits for it
}

type options struct {
	version, revision string
	transport         http.RoundTripper
	retrying          func(error)
	random            func() float64 // of waits
	suffix            func() string  // of names; nil for one of package fleet
}

// Option changes how an [InstanceGroup] works.
type Option func(*options)

// WithVersion sets the version and the revision that the host is told.
func WithVersion(version, revision string) Option {
	return func(o *options) { o.version, o.revision = version, revision }
}

// WithTransport sets the transport of all API calls, instead of the network
// with the TLS settings of clouds.yaml.
func WithTransport(transport http.RoundTripper) Option {
	return func(o *options) { o.transport = transport }
}

// WithRetrying has a function told of each API call that failed and is tried
// again, with its error, for those who wait for it. Calls may overlap.
func WithRetrying(told func(failed error)) Option {
	return func(o *options) { o.retrying = told }
}

// New returns a group that is not initialised yet.
func New(opts ...Option) *InstanceGroup {
	g := &InstanceGroup{}
	for _, opt := range opts {
		opt(&g.opts)
	}
	return g
}

// UnmarshalJSON takes the configuration. The error is a [ConfigError] with
// every mistake in it.
func (g *InstanceGroup) UnmarshalJSON(raw []byte) (err error) {
	defer guard("read configuration", hclog.Default(), &err)
	return json.Unmarshal(raw, &g.config)
}

// Init authenticates, looks up what the configuration names, and starts to work.
// It creates nothing. Of the cloud it needs Keystone and Nova: while anything else
// is missing, the servers that exist are kept and deleted, and none is created.
func (g *InstanceGroup) Init(ctx context.Context, logger hclog.Logger, settings provider.Settings) (info provider.ProviderInfo, err error) {
	defer guard("Init", logger, &err)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state != nil {
		return info, errors.New("the group is initialised already")
	}
	if err := g.config.check(); err != nil {
		return info, err
	}
	if g.opts.random == nil {
		g.opts.random = rand.Float64
	}
	client, err := dial(ctx, g.config, g.opts, logger)
	if err != nil {
		return info, err
	}
	data, problem := g.config.Server.loadUserData()
	if problem != nil {
		client.Close()
		return info, problems{*problem}.err()
	}
	owner, err := claim(ctx, g.config, client.Place(), logger)
	if err != nil {
		client.Close()
		return info, err
	}
	config := g.config
	// Read once: names may be looked up again, while the file changes.
	config.Server.UserData, config.Server.UserDataFile = string(data), ""
	openstack := newOpenStack(client, config, logger)
	openstack.process = owner.mark()
	openstack.supply.random = g.opts.random
	openstack.supply.lookUp(ctx)
	//nolint:contextcheck // the work outlives the call of Init that starts it
	g.state = start(openstack, owner, g.opts, settings.ConnectorConfig, logger)
	found, _ := openstack.supply.get()
	logger.Info("group ready", "cloud", g.config.Cloud, "name", g.config.Name, "tag", g.config.Tag,
		"microversion", client.Microversion().String(), "flavor", found.flavor.Name, "image", found.image.ID)
	warnAboutConnector(settings.ConnectorConfig, logger)
	v := versionInfo(g.opts)
	return provider.ProviderInfo{
		ID:      fmt.Sprintf("openstack/%s/%s", g.config.Cloud, g.config.Name),
		MaxSize: g.config.MaxSize, Version: v.Version, BuildInfo: v.BuildInfo(),
	}, nil
}

// check validates a configuration that may not have come through ParseConfig.
func (c *Config) check() error {
	var found problems
	c.setNumberDefaults()
	c.setTextDefaults()
	c.validate(&found)
	return found.err()
}

// dial opens the cloud.
func dial(ctx context.Context, config Config, opts options, logger hclog.Logger) (*cloud.Client, error) {
	return cloud.Connect(ctx, cloud.Options{
		Cloud: config.Cloud, CloudsFile: config.CloudsConfig, FromEnv: config.AuthFromEnv, LookupEnv: os.LookupEnv,
		VolumeType: config.Server.VolumeType != "", Calls: config.calls(), Transport: opts.transport, Hidden: config.Server.hidden(),
		UserAgent: "fleeting-plugin-openstack/" + versionInfo(opts).Version, Log: slogger(logger), Retrying: opts.retrying,
		Random: opts.random,
	})
}

// calls is how many calls a second the plugin may make.
func (c *Config) calls() float64 {
	if c.MaxCallsPerSecond != nil {
		return float64(*c.MaxCallsPerSecond)
	}
	return cloud.DefaultCalls
}

// start makes the group and the goroutines that do its work.
func start(openstack *openstack, owner *ownership, opts options, connector provider.ConnectorConfig, logger hclog.Logger) *running {
	config := openstack.config
	group := fleet.New(fleet.Settings{
		Name: config.Name, MaxSize: config.MaxSize, Peers: owner,
		Creates: parallel(config.MaxParallelCreates, createsMost), Deletes: parallel(config.MaxParallelDeletes, deletesMost),
		BuildTimeout: time.Duration(config.BuildTimeout), DeleteTimeout: time.Duration(config.DeleteTimeout),
		Random: opts.random, Suffix: opts.suffix,
	}, openstack, slogger(logger), time.Now)
	ctx, cancel := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for _, run := range []func(context.Context){group.Run, openstack.supply.run} {
		workers.Go(func() {
			for ctx.Err() == nil {
				work(ctx, run, logger)
				select {
				case <-ctx.Done():
				case <-time.After(time.Second): // a panic that repeats must not spin
				}
			}
		})
	}
	return &running{
		group: group, cloud: openstack, connector: connector, owner: owner, log: logger,
		stop: func() {
			cancel()
			workers.Wait()
			openstack.client.Close()
			owner.leave()
		},
	}
}

// work runs a part of the group, and survives its panics.
func work(ctx context.Context, run func(context.Context), logger hclog.Logger) {
	var err error
	defer guard("group", logger, &err)
	run(ctx)
}

// parallel is how many requests a group may have under way: what is set, or what
// the cloud bears.
func parallel(set *int, most int) fleet.Parallel {
	if set != nil {
		return fleet.Parallel{Start: *set, Most: *set}
	}
	return fleet.Parallel{Start: parallelStart, Most: most}
}

// warnAboutConnector says what no server could be reached without.
func warnAboutConnector(c provider.ConnectorConfig, logger hclog.Logger) {
	if c.Username == "" || !c.UseStaticCredentials {
		logger.Warn("the plugin provisions no credentials: set username, key_path or password and use_static_credentials in connector_config")
	}
}

// guard turns a panic into an error, and logs the stack.
func guard(op string, logger hclog.Logger, err *error) {
	cause := recover()
	if cause == nil {
		return
	}
	logger.Error("panic recovered", "in", op, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	*err = fmt.Errorf("%s: internal error: %v", op, cause)
}

// logger is the one that the host gave, once it has.
func (g *InstanceGroup) logger() hclog.Logger {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == nil {
		return hclog.Default()
	}
	return g.state.log
}

// ready returns the state that Init made.
func (g *InstanceGroup) ready() (*running, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == nil {
		return nil, errors.New("the group is not initialised")
	}
	return g.state, nil
}
