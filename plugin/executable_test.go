package plugin_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/integration"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// TestExecutableProvisions runs fleeting's own test of plugins on the built
// executable: servers come up, a command runs on one over SSH, and they go.
func TestExecutableProvisions(t *testing.T) {
	t.Parallel()
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
	w := &world{Simulator: cloud, clouds: clouds}
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

func buildExecutable(t *testing.T) string {
	t.Helper()
	return integration.BuildPluginBinary(t, "../cmd/fleeting-plugin-openstack", "fleeting-plugin-openstack")
}
