package installer_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	runner "gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/installer"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
)

// dialed says where connections to addresses without a registry really go.
var dialed sync.Map

// TestMain also is the program that tests start many times, or kill.
func TestMain(m *testing.M) {
	// The runner's installer takes no ports, and its client gives no way to set
	// a dialer but this variable.
	if transport, ok := remote.DefaultTransport.(*http.Transport); ok {
		transport.DialContext = dial
	}
	if from, to, ok := strings.Cut(os.Getenv("INSTALLER_TEST_DIAL"), "="); ok {
		dialed.Store(from, to)
	}
	if err := confine(os.Getenv); err != nil {
		os.Exit(fail(err))
	}
	code := -1
	switch {
	case os.Getenv("INSTALLER_TEST_RUNNER") != "":
		code = runnerChild()
	case os.Getenv("INSTALLER_TEST_OFFLINE") != "":
		code = offlineChild()
	case os.Getenv("INSTALLER_TEST_CHILD") != "":
		code = child()
	case os.Getenv("INSTALLER_TEST_NOTHING") != "":
		code = 0
	}
	if code < 0 {
		code = m.Run()
	} else if file := os.Getenv("INSTALLER_TEST_PEAK"); file != "" {
		code = max(code, writePeak(file))
	}
	os.Exit(code)
}

// writePeak writes the largest resident set of this process, in kilobytes, where
// the system says it.
func writePeak(file string) int {
	peak := "0"
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		_, after, _ := strings.Cut(string(status), "VmHWM:")
		line, _, _ := strings.Cut(after, " kB")
		peak = strings.TrimSpace(line)
	}
	if err := os.WriteFile(file, []byte(peak), 0o600); err != nil {
		return fail(err)
	}
	return 0
}

func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if to, ok := dialed.Load(addr); ok {
		addr = to.(string) //nolint:errcheck // only portless stores
	}
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

// portless makes a registry reachable under a private address, each test its own:
// for the runner's installer, which uses plain HTTP for those, through its
// transport, for ours through portlessRegistries.
func portless(tb testing.TB, ip string, registry *registrytest.Registry) string {
	tb.Helper()
	if _, taken := dialed.LoadOrStore(ip+":80", registry.Host); taken {
		tb.Fatalf("%s is used by another test", ip)
	}
	return ip
}

func portlessRegistries(tb testing.TB, host string) *installer.Registries {
	tb.Helper()
	r, err := installer.NewRegistries(installer.RegistryOptions{PlainHTTP: []string{host}, Transport: &http.Transport{DialContext: dial}})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// child installs what its environment says and prints the path.
func child() int {
	key, err := os.ReadFile(os.Getenv("INSTALLER_TEST_KEY"))
	if err != nil {
		return fail(err)
	}
	signer, err := installer.RequireKey(key, installer.KeyOptions{})
	if err != nil {
		return fail(err)
	}
	policy, err := installer.NewPolicy(installer.Rule{Scope: "**", Signers: []installer.Signer{signer}})
	if err != nil {
		return fail(err)
	}
	i, err := installer.New(policy, installer.WithFolder(os.Getenv("INSTALLER_TEST_FOLDER")))
	if err != nil {
		return fail(err)
	}
	ref, err := installer.ParseReference(os.Getenv("INSTALLER_TEST_CHILD"))
	if err != nil {
		return fail(err)
	}
	installed, err := i.Install(context.Background(), ref, installer.InstallOptions{As: alias})
	if err != nil {
		return fail(err)
	}
	fmt.Fprintln(os.Stdout, installed.Path)
	return 0
}

// runnerChild does the same with the runner's installer, which verifies nothing.
func runnerChild() int {
	err := runner.Install(context.Background(), os.Getenv("INSTALLER_TEST_RUNNER"), runner.WithDirectory(os.Getenv("INSTALLER_TEST_FOLDER")))
	if err != nil {
		return fail(err)
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
