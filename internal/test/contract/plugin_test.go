package contract

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// onOneSimulator runs a test with a simulated cloud and a plugin for it.
func onOneSimulator(t *testing.T, with func(t *testing.T, cloud *Cloud, group *plugin.InstanceGroup, file string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim, err := openstacksim.New(openstacksim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		content := sim.CloudsYAML("http://simulator")
		file := filepath.Join(t.TempDir(), "clouds.yaml")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		clouds, err := ParseClouds(content)
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: sim.Transport()}
		cloud, err := Connect(t.Context(), client, clouds[openstacksim.CloudPassword], clouds[openstacksim.CloudTiny], clouds[openstacksim.CloudCredential])
		if err != nil {
			t.Fatal(err)
		}
		with(t, cloud, plugin.New(plugin.WithTransport(sim.Transport())), file)
	})
}

// TestPluginOnSimulator scales the plugin from 1 to 20 and to 0 servers on the
// simulator, as TestPluginOnReal does on the real services.
func TestPluginOnSimulator(t *testing.T) {
	t.Parallel()
	onOneSimulator(t, func(t *testing.T, cloud *Cloud, group *plugin.InstanceGroup, file string) {
		t.Helper()
		scale(t, cloud, group, file, openstacksim.CloudCredential)
	})
}

// TestPluginWithAQuotaOfTwoOnSimulator is TestPluginWithAQuotaOfTwoOnReal on the
// simulator.
func TestPluginWithAQuotaOfTwoOnSimulator(t *testing.T) {
	t.Parallel()
	onOneSimulator(t, func(t *testing.T, cloud *Cloud, group *plugin.InstanceGroup, file string) {
		t.Helper()
		serveJobs(t, cloud, group, file, openstacksim.CloudTiny)
	})
}

// scale runs the plugin the way a runner does: 1, 20 and 0 servers, with
// nothing left behind.
func scale(t *testing.T, cloud *Cloud, group *plugin.InstanceGroup, cloudsFile, cloudName string) {
	t.Helper()
	const tag = "fleeting:contract-scale"
	initialise(t, group, object{
		"cloud": cloudName, "clouds_config": cloudsFile, "name": "contract-scale",
		"server": object{
			"flavor": "m1.small", "image": "Ubuntu 24.04", "networks": []string{"private"}, "security_groups": []string{"ssh"},
			"key_name": "fleeting", "config_drive": true, "user_data": "#cloud-config\n", "metadata": object{"purpose": "contract"},
		},
	})
	before := leftovers(t, cloud, tag)
	for step, more := range []int{1, 19} {
		begin := time.Now()
		if got, err := group.Increase(t.Context(), more); got != more || err != nil {
			t.Fatalf("step %d: increase by %d: got %d, %v", step, more, got, err)
		}
		want := []int{1, 20}[step]
		reported := until(t, group, func(states map[string]provider.State) bool { return running(states) == want })
		t.Logf("%d running after %s", want, time.Since(begin).Round(time.Second))
		for name := range reported {
			info, err := group.ConnectInfo(t.Context(), name)
			if err != nil || info.InternalAddr == "" || info.OS != "linux" || info.Arch != "amd64" {
				t.Errorf("connect info of %s: %+v, %v", name, info, err)
			}
			if err := group.Heartbeat(t.Context(), name); err != nil {
				t.Errorf("heartbeat of %s: %v", name, err)
			}
		}
	}
	begin := time.Now()
	var names []string
	for name := range until(t, group, func(map[string]provider.State) bool { return true }) {
		names = append(names, name)
	}
	if removed, err := group.Decrease(t.Context(), names); len(removed) != len(names) || err != nil {
		t.Errorf("decrease of %d: got %d, %v", len(names), len(removed), err)
	}
	until(t, group, func(states map[string]provider.State) bool {
		for _, state := range states {
			if state != provider.StateDeleted {
				return false
			}
		}
		return true
	})
	t.Logf("none left after %s", time.Since(begin).Round(time.Second))
	if err := group.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	awaitLeftovers(t, cloud, tag, before)
}

// awaitLeftovers waits until there is no more than before.
func awaitLeftovers(t *testing.T, cloud *Cloud, tag string, before left) {
	t.Helper()
	deadline, again := time.NewTimer(time.Minute), time.NewTicker(time.Second)
	defer deadline.Stop()
	defer again.Stop()
	for after := leftovers(t, cloud, tag); after != before; after = leftovers(t, cloud, tag) {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("left behind: %+v, before %+v", after, before)
		}
	}
}

func running(states map[string]provider.State) int {
	n := 0
	for _, state := range states {
		if state == provider.StateRunning {
			n++
		}
	}
	return n
}

// until updates every two seconds, as the runner does while it waits for
// something, until what is reported is as wanted.
func until(t *testing.T, group *plugin.InstanceGroup, wanted func(map[string]provider.State) bool) map[string]provider.State {
	t.Helper()
	deadline := time.NewTimer(10 * time.Minute)
	defer deadline.Stop()
	again := time.NewTicker(2 * time.Second)
	defer again.Stop()
	for {
		states := map[string]provider.State{}
		if err := group.Update(t.Context(), func(name string, state provider.State) { states[name] = state }); err != nil {
			t.Errorf("update: %v", err)
		}
		if wanted(states) {
			return states
		}
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("still %v", states)
		}
	}
}

// left is what could be left behind.
type left struct{ servers, ports, volumes int }

func leftovers(t *testing.T, cloud *Cloud, tag string) left {
	t.Helper()
	list := func(service, path, plural string) (n int) {
		reply, err := cloud.do(t.Context(), request{http.MethodGet, service, path, nil, "2.93", cloud.tokens[cloud.main.Auth.Project]})
		if err != nil || reply.Status != http.StatusOK {
			t.Fatalf("%s: status %d, %v", path, reply.Status, err)
		}
		for _, item := range reply.List(plural) {
			// While deletions run, Nova lists servers that are DELETED already.
			if item["status"] != "DELETED" {
				n++
			}
		}
		return n
	}
	found := left{
		servers: list("compute", "/servers/detail?tags="+tag, "servers"),
		ports:   list("network", "/v2.0/ports", "ports"),
	}
	if _, known := cloud.endpoints["volume"]; known {
		found.volumes = list("volume", "/volumes/detail", "volumes")
	}
	return found
}

// initialise starts the plugin with a configuration.
func initialise(t *testing.T, group *plugin.InstanceGroup, config object) {
	t.Helper()
	config["lock_dir"] = filepath.Join(t.TempDir(), "locks")
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, group); err != nil {
		t.Fatal(err)
	}
	settings := provider.Settings{ConnectorConfig: provider.ConnectorConfig{Username: "runner", Password: "secret", UseStaticCredentials: true}}
	logger := hclog.New(&hclog.LoggerOptions{Output: t.Output(), Level: hclog.Info})
	if _, err := group.Init(t.Context(), logger, settings); err != nil {
		t.Fatal(err)
	}
}

// serveJobs gives 15 jobs a server each, as many at a time as there are, while the
// runner would have five: the project has room for two.
func serveJobs(t *testing.T, cloud *Cloud, group *plugin.InstanceGroup, cloudsFile, cloudName string) {
	t.Helper()
	const tag, jobs, most, quota = "fleeting:contract-quota", 15, 5, 2
	cloud = cloud.ofTiny()
	initialise(t, group, object{
		"cloud": cloudName, "clouds_config": cloudsFile, "name": "contract-quota",
		"server": object{"flavor": "m1.small", "image": "Ubuntu 24.04", "networks": []string{"private"}},
	})
	before := leftovers(t, cloud, tag)
	begin, counted, served := time.Now(), 0, map[string]bool{}
	for len(served) < jobs {
		states := until(t, group, func(map[string]provider.State) bool { return true })
		alive := 0
		for name, state := range states {
			if state != provider.StateDeleted {
				alive++
			}
			if state != provider.StateRunning || served[name] {
				continue
			}
			served[name] = true
			if _, err := group.Decrease(t.Context(), []string{name}); err != nil {
				t.Error(err)
			}
		}
		if n := running(states); n > quota {
			t.Errorf("%d servers run, of the quota of %d", n, quota)
		}
		// A host asks for what it lacks, and counts what it was promised.
		if want := min(most, jobs-len(served)) - max(alive, counted); want > 0 {
			got, err := group.Increase(t.Context(), want)
			if err != nil {
				t.Error(err)
			}
			counted = alive + got
		} else {
			counted = alive
		}
		if time.Since(begin) > 20*time.Minute {
			t.Fatalf("after %s: %d of %d jobs have had their server", time.Since(begin), len(served), jobs)
		}
		<-time.After(time.Second)
	}
	t.Logf("%d jobs after %s", jobs, time.Since(begin).Round(time.Second))
	for name := range until(t, group, func(map[string]provider.State) bool { return true }) {
		if _, err := group.Decrease(t.Context(), []string{name}); err != nil {
			t.Error(err)
		}
	}
	until(t, group, func(states map[string]provider.State) bool {
		for _, state := range states {
			if state != provider.StateDeleted {
				return false
			}
		}
		return true
	})
	if err := group.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	awaitLeftovers(t, cloud, tag, before)
}
