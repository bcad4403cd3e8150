package packager_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// builds keeps the executables that were built, by platform and version.
var builds = struct {
	sync.Mutex
	dir  string
	done map[string]string
}{done: map[string]string{}}

// dialed says where connections to addresses without a registry really go.
var dialed sync.Map

func TestMain(m *testing.M) {
	if job := os.Getenv(releaseJob); job != "" {
		if err := releaseAlone(job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
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
	code := m.Run()
	_ = os.RemoveAll(builds.dir)
	os.Exit(code)
}

// portless makes a registry reachable for the runner's installer under a
// private address, each test its own, for which it uses plain HTTP.
func portless(t testing.TB, ip string, reg *registrytest.Registry) string {
	t.Helper()
	if _, taken := dialed.LoadOrStore(ip+":80", reg.Host); taken {
		t.Fatalf("%s is used by another test", ip)
	}
	return ip
}

// executable builds testdata/plugin for "os/arch[variant]".
func executable(t testing.TB, platform, version string) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	key := platform + " " + version
	if path := builds.done[key]; path != "" {
		return path
	}
	if builds.dir == "" {
		dir, err := os.MkdirTemp("", "packager-test-") //nolint:usetesting // outlives the test that built it first
		if err != nil {
			t.Fatal(err)
		}
		builds.dir = dir
	}
	system, arch, _ := strings.Cut(platform, "/")
	arch, arm, _ := strings.Cut(arch, "v")
	path := filepath.Join(builds.dir, strings.NewReplacer("/", "_", " ", "_").Replace(key))
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version,
		"-o", path, "./testdata/plugin")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOARM="+arm, "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building for %s: %v\n%s", platform, err, out)
	}
	builds.done[key] = path
	return path
}

// writeDist makes a dist folder with the fixture for the platforms.
func writeDist(t testing.TB, version string, platforms ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range platforms {
		name := "plugin"
		if strings.HasPrefix(p, "windows/") {
			name = "plugin.exe"
		}
		copyFile(t, executable(t, p, version), filepath.Join(dir, filepath.FromSlash(p), name), 0o755)
	}
	return dir
}

func copyFile(t testing.TB, from, to string, mode os.FileMode) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, raw, mode)
}

func writeFile(t testing.TB, path string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func scan(t testing.TB, dir string) *packager.Dist {
	t.Helper()
	dist, err := packager.Scan(t.Context(), dir, packager.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return dist
}

func version(t testing.TB, s string) packager.Version {
	t.Helper()
	v, err := packager.ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// pack makes a layout and returns its folder and what Pack said.
func pack(t testing.TB, v string, dist *packager.Dist) (string, *packager.Packed) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	packed, err := packager.Pack(t.Context(), dist, version(t, v), dir, packager.PackOptions{Metadata: metadata()})
	if err != nil {
		t.Fatal(err)
	}
	return dir, packed
}

func metadata() packager.Metadata {
	return packager.Metadata{Title: "demo", Licenses: "MIT", Created: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
}

// repository opens a repository that retries at once.
func repository(t testing.TB, name string) *ociregistry.Repository {
	t.Helper()
	return open(t, name, ociregistry.Options{Retries: 3})
}

func open(t testing.TB, name string, opts ociregistry.Options) *ociregistry.Repository {
	t.Helper()
	opts.FirstWait = time.Millisecond
	client, err := ociregistry.NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	repo, err := client.Repository(name)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

// tags returns which digest each tag points to, signatures and fallback tags
// left out.
func tags(t testing.TB, repo *ociregistry.Repository) map[string]string {
	t.Helper()
	out := map[string]string{}
	names, err := repo.Tags(t.Context())
	if errors.Is(err, ociregistry.ErrNotFound) {
		return out // nothing was pushed yet
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "sha256-") {
			continue
		}
		desc, err := repo.Resolve(t.Context(), name)
		if err != nil {
			t.Fatal(fmt.Errorf("tag %s: %w", name, err))
		}
		out[name] = desc.Digest.String()
	}
	return out
}
