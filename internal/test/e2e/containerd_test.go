//go:build e2e

package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// containerd is Debian's containerd with folders of its own, driven by ctr.
type containerd struct {
	l      *lab
	socket string
	runs   int
}

const containerdConf = `version = 2
root = %[1]q
state = %[2]q
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = %[3]q
`

func newContainerd(t *testing.T, l *lab) *containerd {
	t.Helper()
	c := &containerd{l: l, socket: filepath.Join(l.dir, "containerd.sock")}
	conf := filepath.Join(l.dir, "containerd.toml")
	writeFile(t, conf, fmt.Sprintf(containerdConf, filepath.Join(l.dir, "containerd"), filepath.Join(l.dir, "containerd-run"), c.socket))
	serve(t, filepath.Join(l.dir, "containerd.log"), "containerd", "--config", conf)
	await(t, "containerd", func() bool {
		_, _, err := try(t, nil, "ctr", "--address", c.socket, "version")
		return err == nil
	})
	return c
}

func (c *containerd) run(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, nil, "ctr", append([]string{"--address", c.socket}, args...)...)
}

// container pulls an image and runs a command in it.
func (c *containerd) container(t *testing.T, arch, image string, options []string, command ...string) string {
	t.Helper()
	platform := "linux/" + arch
	c.run(t, "image", "pull", "--plain-http", "--platform", platform, image)
	c.runs++
	args := append([]string{"run", "--rm", "--runc-root", filepath.Join(c.l.dir, "runc", "ctr"), "--platform", platform, "--read-only"}, options...)
	return c.run(t, append(append(args, image, fmt.Sprintf("run-%d", c.runs)), command...)...)
}

func testContainerd(t *testing.T, l *lab) {
	c := newContainerd(t, l)
	software := "containerd " + version(t, "ctr", "--version")
	for _, plugin := range []published{l.openstack, l.dummy} {
		for _, arch := range architectures() {
			l.report.check(t, software, fmt.Sprintf("bootstrap of %s on %s", plugin.title, arch), func(t *testing.T) {
				dir := pluginVolume(t)
				mount := "type=bind,src=" + dir + ",dst=/plugins,options=rbind:"
				// ctr takes the whole command line and no entry point.
				out := c.container(t, arch, plugin.reference(), []string{"--mount", mount + "rw"}, "/plugin/plugin", "bootstrap", plugin.image)
				if want := "/plugins/" + plugin.folder(); strings.TrimSpace(out) != want {
					t.Errorf("bootstrap said %q, want %q", strings.TrimSpace(out), want)
				}
				options := []string{
					"--mount", mount + "ro", "--mount", "type=tmpfs,src=tmpfs,dst=/tmp,options=mode=1777",
					"--env", "FLEETING_PLUGIN_PATH=/plugins", "--env", "E2E_PLUGIN=" + plugin.reference(), "--env", "E2E_READ_ONLY=1",
				}
				served(t, c.container(t, arch, l.guest, options, "/guest", "-test.v"), plugin, arch)
			})
		}
	}
}
