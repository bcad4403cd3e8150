//go:build e2e

package e2e_test

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/reducedrunner"
)

const (
	// oneBuild bounds a build: a kubelet from nothing takes two processors about
	// five minutes, and machines that others use many times that.
	oneBuild = 30 * time.Minute
	// oneWord is how often a build says how far it is.
	oneWord = 30 * time.Second
)

// The commands that the modules in containerd, runner and kube pin.
const (
	containerdCommand = "github.com/containerd/containerd/v2/cmd/containerd"
	shimCommand       = "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	runpodCommand     = "./runpod"
	kubeletCommand    = "k8s.io/kubernetes/cmd/kubelet"
	// withoutDrivers leaves out what containerd has for other file systems; two
	// of them need C.
	withoutDrivers = "no_btrfs no_devmapper no_zfs no_aufs"
)

// build compiles commands of a module into a folder, and says how it goes. Go's
// cache has them the next time.
func build(t *testing.T, module, dir string, args ...string) {
	t.Helper()
	mustGoOn(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := stepContext(t, oneBuild)
	defer cancel()
	cmd := command(ctx, builtAlike(), "go", append([]string{"build", "-C", module, "-v", "-o", dir + "/"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("building %s; from nothing this takes minutes", strings.Join(args[len(args)-1:], " "))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	var packages int
	next := time.Now().Add(oneWord)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		packages++
		if time.Now().After(next) {
			t.Logf("%d packages compiled, now %s", packages, lines.Text())
			next = time.Now().Add(oneWord)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("building: %v\n%s", err, said.String())
	}
}

// builtAlike is the environment in which everything of these modules is built.
func builtAlike() []string { return reducedrunner.Environment() }

// required is the version of a module that a go.mod requires, without v.
func required(t *testing.T, dir, module string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(strings.TrimPrefix(line, "require ")); len(fields) > 1 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return strings.TrimPrefix(fields[1], "v")
		}
	}
	t.Fatalf("%s/go.mod requires no %s", dir, module)
	return ""
}
