package plugin_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"gitlab.com/gitlab-org/fleeting/fleeting"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

const (
	groupName = "runner"
	groupTag  = "fleeting:runner"
)

// world is a simulated cloud and all that a plugin needs to use it. It works
// in a synctest bubble: nothing of it waits for a socket.
type world struct {
	*sim.Simulator
	seed   uint64 // 0: not repeatable
	way    http.RoundTripper
	clouds string
	log    *logBook
}

func newWorld(t *testing.T, options sim.Options) *world {
	t.Helper()
	return newWorldTB(t, options)
}

func newWorldTB(t testing.TB, options sim.Options) *world {
	t.Helper()
	cloud, err := sim.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cloud.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{Simulator: cloud, seed: options.RandomSeed, way: cloud.Transport(), clouds: filepath.Join(t.TempDir(), "clouds.yaml"), log: &logBook{}}
	if w.seed != 0 {
		w.way = &network{RoundTripper: w.way, seed: w.seed, asked: map[string]uint64{}}
	}
	w.writeClouds(t)
	return w
}

// Transport is the way to the cloud.
func (w *world) Transport() http.RoundTripper { return w.way }

func (w *world) writeClouds(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(w.clouds, w.CloudsYAML("http://cloud.example"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// config is a small valid configuration; change adds to it.
func (w *world) config(change map[string]any) map[string]any {
	server := map[string]any{"flavor": "m1.small", "image": "Ubuntu 24.04", "networks": []string{"private"}}
	config := map[string]any{
		"cloud": sim.CloudPassword, "clouds_config": w.clouds, "name": groupName, "server": server,
		"lock_dir": filepath.Join(filepath.Dir(w.clouds), "locks"),
	}
	for key, value := range change {
		if inner, ok := strings.CutPrefix(key, "server."); ok {
			server[inner] = value
		} else {
			config[key] = value
		}
	}
	return config
}

func settings() provider.Settings {
	return provider.Settings{ConnectorConfig: provider.ConnectorConfig{
		Username: "runner", Password: "secret", UseStaticCredentials: true, Timeout: 10 * time.Second,
	}}
}

// newGroup configures a plugin without starting it.
func (w *world) newGroup(t *testing.T, change map[string]any) *plugin.InstanceGroup {
	t.Helper()
	raw, err := json.Marshal(w.config(change))
	if err != nil {
		t.Fatal(err)
	}
	options := []plugin.Option{plugin.WithTransport(w.Transport()), plugin.WithVersion("1.2.3", "abc")}
	if w.seed != 0 {
		options = append(options, repeatable(w.seed))
	}
	group := plugin.New(options...)
	if err := json.Unmarshal(raw, group); err != nil {
		t.Fatal(err)
	}
	return group
}

// start starts a plugin, and stops it when the test ends.
func (w *world) start(t *testing.T, change map[string]any) *plugin.InstanceGroup {
	t.Helper()
	return w.init(t, w.newGroup(t, change))
}

// startWith starts a plugin that reaches the cloud through a transport.
func (w *world) startWith(t *testing.T, transport http.RoundTripper) *plugin.InstanceGroup {
	t.Helper()
	return w.init(t, w.groupOver(t, transport, nil))
}

// groupOver configures a plugin that reaches the cloud through a transport.
func (w *world) groupOver(t *testing.T, transport http.RoundTripper, change map[string]any) *plugin.InstanceGroup {
	t.Helper()
	raw, err := json.Marshal(w.config(change))
	if err != nil {
		t.Fatal(err)
	}
	group := plugin.New(plugin.WithTransport(transport))
	if err := json.Unmarshal(raw, group); err != nil {
		t.Fatal(err)
	}
	return group
}

func (w *world) init(t *testing.T, group *plugin.InstanceGroup) *plugin.InstanceGroup {
	t.Helper()
	if _, err := group.Init(t.Context(), w.log.logger(), settings()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.shutdown(t, group) })
	return group
}

func (w *world) shutdown(t *testing.T, group *plugin.InstanceGroup) {
	t.Helper()
	if err := group.Shutdown(t.Context()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// states runs one Update and returns what it reported.
func states(t *testing.T, group provider.InstanceGroup) map[string]provider.State {
	t.Helper()
	reported, err := update(t, group)
	if err != nil {
		t.Fatalf("update: %v", err)
	}
	return reported
}

func update(t *testing.T, group provider.InstanceGroup) (map[string]provider.State, error) {
	t.Helper()
	reported := map[string]provider.State{}
	err := group.Update(t.Context(), func(id string, state provider.State) {
		if _, twice := reported[id]; twice {
			t.Errorf("update reported %s twice", id)
		}
		reported[id] = state
	})
	return reported, err
}

// count counts instances in a state.
func count(reported map[string]provider.State, state provider.State) int {
	n := 0
	for _, s := range reported {
		if s == state {
			n++
		}
	}
	return n
}

// usable are the servers of the group that a job could run on, or will.
func (w *world) usable() []sim.ServerInfo {
	return slices.DeleteFunc(w.Snapshot().Tagged(groupTag), func(s sim.ServerInfo) bool {
		return s.Status == "ERROR" || s.Status == "SOFT_DELETED" || s.TaskState == "deleting" || s.TaskState == "soft-deleting"
	})
}

// scaler drives a group through fleeting's own provisioner as the runner's
// taskscaler does: it asks for what is missing, no more.
type scaler struct {
	*fleeting.Provisioner
	world   *world
	most    int // most usable servers seen at one time
	stopped chan struct{}
	done    sync.WaitGroup
}

// scale starts a provisioner that keeps wanted instances. It must run in a
// synctest bubble.
func (w *world) scale(t *testing.T, group provider.InstanceGroup, wanted, most int) *scaler {
	t.Helper()
	provisioner, err := fleeting.Init(t.Context(), w.log.logger(), group,
		fleeting.WithMaxSize(most), fleeting.WithInstanceGroupSettings(settings()))
	if err != nil {
		t.Fatal(err)
	}
	s := &scaler{Provisioner: provisioner, world: w, stopped: make(chan struct{})}
	s.done.Go(func() {
		ticker := time.NewTicker(2 * time.Second)
		defer ticker.Stop()
		for {
			s.most = max(s.most, len(w.usable()))
			c := s.Capacity()
			if missing := wanted - c.Requested - c.Creating - c.Running; missing > 0 {
				s.Request(missing)
			}
			select {
			case <-s.stopped:
				return
			case <-ticker.C:
			}
		}
	})
	return s
}

// stop ends the provisioner, and with it the plugin.
func (s *scaler) stop(t *testing.T) {
	t.Helper()
	close(s.stopped)
	s.done.Wait()
	s.halt(t)
}

// halt ends the provisioner; its loop notices at the end of its pause.
func (s *scaler) halt(t *testing.T) {
	t.Helper()
	s.Shutdown(t.Context())
	<-time.After(2 * time.Minute)
}

// assertExact checks the four promises: the wanted servers, no orphans, no
// lost slots, and never more than wanted.
func (s *scaler) assertExact(t *testing.T, wanted int) {
	t.Helper()
	running := map[string]bool{}
	for _, inst := range s.Instances() {
		if inst.State() == provider.StateRunning {
			running[inst.ID()] = true
		}
	}
	if len(running) != wanted {
		t.Errorf("running instances: got %d, want %d", len(running), wanted)
	}
	servers := s.world.Snapshot().Tagged(groupTag)
	if len(servers) != wanted {
		t.Errorf("servers in the cloud: got %d, want %d", len(servers), wanted)
	}
	for _, server := range servers {
		if !running[server.Name] {
			t.Errorf("orphan: server %s (%s %s)", server.Name, server.Status, server.TaskState)
		}
	}
	if c := s.Capacity(); c.Requested != 0 || c.Pending != 0 || c.Creating != 0 || c.Deleting != 0 {
		t.Errorf("lost slots: %+v", c)
	}
	if s.most > wanted {
		t.Errorf("runaway: %d usable servers at one time, %d wanted", s.most, wanted)
	}
	if t.Failed() {
		t.Log(s.world.log.String())
	}
}

// logBook keeps what a plugin logs.
type logBook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBook) logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: l, Level: hclog.Debug})
}

// lines counts the lines that have all of the parts.
func (l *logBook) lines(parts ...string) int {
	n := 0
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			n++
		}
	}
	return n
}

func names(instances map[string]provider.State) []string {
	var all []string
	for name := range instances {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// killable lets a plugin be killed: from then on its calls reach nobody, and
// what it had sent is not heard of any more.
type killable struct {
	http.RoundTripper
	dead atomic.Bool
}

func (k *killable) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.dead.Load() {
		return nil, errors.New("killed")
	}
	answer, err := k.RoundTripper.RoundTrip(r)
	if k.dead.Load() {
		return nil, errors.New("killed")
	}
	return answer, err
}
