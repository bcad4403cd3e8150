//go:build interop

package interop_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// dialed says where connections to addresses without a registry really go.
var dialed sync.Map

func TestMain(m *testing.M) {
	// The runner's installer takes no ports, and its client gives no way to set
	// a dialer but this variable.
	if transport, ok := remote.DefaultTransport.(*http.Transport); ok {
		transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if to, ok := dialed.Load(addr); ok {
				addr = to.(string) //nolint:errcheck // only portless stores
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}
	}
	var err error
	if builds.dir, err = os.MkdirTemp("", "interop-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(builds.dir)
	os.Exit(code)
}

// builds are the commands under test, built once for all tests.
var builds struct {
	sync.Once
	dir string
	err error
}

// executables are fleeting-plugin for this machine, and a folder with our plugin
// for two platforms, which nobody writes to.
func executables(tb testing.TB) (tool, dist string) {
	tb.Helper()
	tool, dist = filepath.Join(builds.dir, "fleeting-plugin"), filepath.Join(builds.dir, "dist")
	builds.Do(func() {
		builds.err = build(tool, "fleeting-plugin")
		for _, arch := range []string{"amd64", "arm64"} {
			if builds.err == nil {
				builds.err = build(filepath.Join(dist, "linux", arch, "plugin"), "fleeting-plugin-openstack", "GOOS=linux", "GOARCH="+arch)
			}
		}
	})
	if builds.err != nil {
		tb.Fatal(builds.err)
	}
	return tool, dist
}

func build(out, name string, env ...string) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-o", out, "github.com/radome-io/fleeting-plugin-openstack/cmd/"+name)
	cmd.Env = append(os.Environ(), append([]string{"CGO_ENABLED=0"}, env...)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", name, err, text)
	}
	return nil
}
