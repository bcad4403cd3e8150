package packager_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

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
	os.Exit(sampleplugin.Main(m))
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

func scan(t testing.TB, dir string) *dist.Dist {
	t.Helper()
	var options dist.Options
	if runtime.GOOS == "windows" {
		options.Executables = []string{""} // it does not tell
	}
	scanned, err := dist.Scan(t.Context(), dir, options)
	if err != nil {
		t.Fatal(err)
	}
	return scanned
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
func pack(t testing.TB, v string, scanned *dist.Dist) (string, *packager.Packed) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	packed, err := packager.Pack(t.Context(), scanned, version(t, v), dir, packager.PackOptions{Metadata: metadata()})
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
