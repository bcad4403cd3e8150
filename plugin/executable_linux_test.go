package plugin_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting"
	"gitlab.com/gitlab-org/fleeting/fleeting/integration"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// TestExecutableProvisions runs fleeting's own test of plugins on the built
// executable: servers come up, a command runs on one over SSH, and they go.
func TestExecutableProvisions(t *testing.T) {
	t.Parallel()
	w, cloud := served(t)
	integration.TestProvisioning(t, buildExecutable(t), integration.Config{
		PluginConfig: w.config(map[string]any{"cloud": sim.CloudCredential}),
		ConnectorConfig: provider.ConnectorConfig{
			Username: "runner", Password: "secret", UseStaticCredentials: true,
			ProtocolPort: cloud.SSHPort(), Timeout: 20 * time.Second,
		},
		MaxInstances: 3,
	})
	if left := cloud.Snapshot().Servers; len(left) != 0 {
		t.Errorf("servers left: %+v", left)
	}
}

// TestExecutableUnderAnOldHost drives the same executable with the version of
// fleeting that runner 17.9 carries: create, connect, run, delete.
func TestExecutableUnderAnOldHost(t *testing.T) {
	t.Parallel()
	w, server := served(t)
	config, err := json.Marshal(w.config(nil))
	if err != nil {
		t.Fatal(err)
	}
	host := filepath.Join(t.TempDir(), "oldhost")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", host, ".")
	build.Dir = "internal/oldhost"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the old host: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), host, buildExecutable(t), string(config), strconv.Itoa(server.SSHPort())).CombinedOutput()
	if err != nil {
		t.Errorf("old host: %v\n%s", err, out)
	}
	if shot := server.Snapshot(); len(shot.Servers) != 0 || shot.ServersCreated != 1 {
		t.Errorf("%d servers made, %d left; want 1 and 0", shot.ServersCreated, len(shot.Servers))
	}
}

// TestExecutableByHand: whoever starts it to see what it is gets its help.
func TestExecutableByHand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"serve"}} {
		command := exec.CommandContext(t.Context(), buildExecutable(t), args...)
		command.Env = []string{} // nil would be this one's
		var out, errs strings.Builder
		command.Stdout, command.Stderr = &out, &errs
		err := command.Run()
		if code := command.ProcessState.ExitCode(); code != 2 || out.Len() > 0 || !strings.Contains(errs.String(), "check, plan, list and cleanup take --config") {
			t.Errorf("%v: exit code %d, want 2 and the help: %v\n%s%s", args, code, err, out.String(), errs.String())
		}
	}
}

// served is a cloud whose servers answer SSH, on a socket.
func served(t *testing.T) (*world, *sim.Simulator) {
	t.Helper()
	cloud, err := sim.New(sim.Options{
		BuildTime: 100 * time.Millisecond, DeleteTime: 100 * time.Millisecond,
		SSH: &sim.SSH{User: "runner", Password: "secret", Dir: t.TempDir()},
	})
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
	return &world{Simulator: cloud, clouds: clouds}, cloud
}

// TestExecutableImportsNoOthersCode: the plugin runs beside the runner's
// credentials, so it has no registry, signing or test code in it.
func TestExecutableImportsNoOthersCode(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "../cmd/fleeting-plugin-openstack")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if len(packages) < 100 {
		t.Fatalf("only %d packages listed", len(packages))
	}
	const own = "github.com/radome-io/fleeting-plugin-openstack/"
	for _, name := range packages {
		for _, never := range []string{
			"oras.land/", "github.com/opencontainers/", "github.com/google/go-containerregistry", "github.com/sigstore/",
			"github.com/docker/", "github.com/stretchr/", "net/http/httptest",
			own + "packager", own + "installer", own + "sbom", own + "internal/",
		} {
			// How files are read, land and are protected, where systems keep them, how flags, manual pages and text of others are written
			// and what a name may have meant are leaf packages for all of the executables.
			leaves := []string{
				own + "internal/access", own + "internal/durable", own + "internal/flagtext", own + "internal/nearest", own + "internal/plaintext",
				own + "internal/places", own + "internal/roff", own + "internal/textfile",
			}
			if strings.HasPrefix(name, never) && !slices.Contains(leaves, name) {
				t.Errorf("the executable needs %s", name)
			}
		}
	}
}

// TestExecutableMemory measures the process with 1,000 servers.
func TestExecutableMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sim.Options{})
	w.thousand(t)
	server := httptest.NewServer(w.Simulator)
	t.Cleanup(server.Close)
	if err := os.WriteFile(w.clouds, w.CloudsYAML(server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(w.config(nil))
	if err != nil {
		t.Fatal(err)
	}
	path := buildExecutable(t)
	runner, err := fleeting.RunPlugin(path, config)
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Kill()
	group := runner.InstanceGroup()
	if _, err := group.Init(t.Context(), w.log.logger(), settings()); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		updateThousand(t, group)
	}
	peak := peakMemory(t, path)
	t.Logf("peak memory with 1,000 servers: %d MiB", peak>>20)
	if peak > 50<<20 {
		t.Errorf("peak memory with 1,000 servers: %d MiB, more than 50", peak>>20)
	}
}

// peakMemory finds the process of an executable and returns its VmHWM.
func peakMemory(t *testing.T, executable string) int64 {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range processes {
		if target, err := os.Readlink(link); err != nil || target != executable {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(link), "status"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return kib << 10
			}
		}
	}
	t.Fatal("the plugin's process was not found")
	return 0
}

func buildExecutable(t *testing.T) string {
	t.Helper()
	return integration.BuildPluginBinary(t, "../cmd/fleeting-plugin-openstack", "fleeting-plugin-openstack")
}
