//go:build interop

package interop_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	runner "gitlab.com/gitlab-org/fleeting/fleeting-artifact/pkg/installer"
)

// registries numbers the registries that the runner's installer is given.
var registries atomic.Uint32

// portless makes a registry reachable for the runner's installer under a
// private address of its own, for which that uses plain HTTP.
func portless(host string) string {
	n := registries.Add(1)
	ip := fmt.Sprintf("10.1.%d.%d", n/256, n%256)
	dialed.Store(ip+":80", host)
	return ip
}

// runnerInstalls has the runner's installer install from a registry, finds the
// plugin with its constraint as the runner does, and compares it with what was
// released.
func runnerInstalls(t *testing.T, host, repository, constraint, dist string) {
	t.Helper()
	at, plugins := portless(host)+"/"+repository+":"+constraint, t.TempDir()
	if err := runner.Install(t.Context(), at, runner.WithDirectory(plugins)); err != nil {
		t.Errorf("the runner's installer, %s: %v", constraint, err)
		return
	}
	path, err := runner.LookPath(at, plugins)
	if err != nil {
		t.Errorf("the runner looks for %s: %v", constraint, err)
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(dist, runtime.GOOS, runtime.GOARCH, "plugin"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the runner installed another plugin under %s", path)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the plugin that the runner installed: %v, %v", info, err)
	}
}
