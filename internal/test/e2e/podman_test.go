//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// podman is Debian's podman with a storage of its own. Nothing in /etc changes.
type podman struct {
	l   *lab
	env []string
}

// Unprivileged machines may raise no limits, so containers get theirs here; and
// runc, because old crun takes no hybrid control groups.
const containersConf = `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
`

func newPodman(t *testing.T, l *lab) *podman {
	t.Helper()
	containers, registries := filepath.Join(l.dir, "containers.conf"), filepath.Join(l.dir, "registries.conf")
	writeFile(t, containers, containersConf)
	writeFile(t, registries, fmt.Sprintf("[[registry]]\nlocation = %q\ninsecure = true\n", l.registry.Host))
	p := &podman{l: l, env: []string{"CONTAINERS_CONF=" + containers, "CONTAINERS_REGISTRIES_CONF=" + registries}}
	t.Cleanup(func() {
		cleanup := []string{"pod rm -fa", "rm -fa", "rmi -fa"}
		for _, args := range cleanup {
			if out, err := quiet(p.env, "podman", p.args(strings.Fields(args)...)...); err != nil {
				t.Errorf("podman %s: %v\n%s", args, err, out)
			}
		}
	})
	return p
}

func (p *podman) args(args ...string) []string {
	return append([]string{"--root", filepath.Join(p.l.dir, "podman"), "--runroot", filepath.Join(p.l.dir, "podman-run")}, args...)
}

func (p *podman) run(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, p.env, "podman", p.args(args...)...)
}

// identity is whom a container runs as.
type identity struct {
	name string
	args []string
}

func identities() []identity {
	return []identity{
		{"root", nil},
		{"an arbitrary user, read-only root, no capabilities", confined("1000660000:0")},
	}
}

// confined is what the restricted Pod Security standard comes down to.
func confined(user string) []string {
	return []string{"--user", user, "--read-only", "--read-only-tmpfs=false", "--cap-drop", "all", "--security-opt", "no-new-privileges"}
}

// bootstrap runs the plugin's image as an init container would, into dir.
func (p *podman) bootstrap(t *testing.T, plugin published, image, arch, dir string, who identity) {
	t.Helper()
	args := append([]string{"run", "--rm", "--network", "none", "--platform", "linux/" + arch, "--pull", "always", "-v", dir + ":/plugins"}, who.args...)
	out := p.run(t, append(args, image, "bootstrap", plugin.image)...)
	if want := "/plugins/" + plugin.folder(); strings.TrimSpace(out) != want {
		t.Errorf("bootstrap said %q, want %q", strings.TrimSpace(out), want)
	}
}

// serve runs the guest as another user than the one that bootstrapped, unless
// the plugin's folder is closed to all but that one.
func (p *podman) serve(t *testing.T, plugin published, arch string, who []string, more ...string) {
	t.Helper()
	args := append([]string{
		"run", "--rm", "--network", "none", "--platform", "linux/" + arch, "--tmpfs", "/tmp:mode=1777",
		"-e", "FLEETING_PLUGIN_PATH=/plugins", "-e", "E2E_PLUGIN=" + plugin.reference(), "-e", "E2E_READ_ONLY=1",
	}, who...)
	args = append(append(args, more...), p.l.guest)
	served(t, p.run(t, args...), plugin, arch)
}

func testPodman(t *testing.T, l *lab) {
	p := newPodman(t, l)
	software := "podman " + version(t, "podman", "--version") + ", runc " + version(t, "runc", "--version")
	for _, plugin := range []published{l.openstack, l.dummy} {
		for _, arch := range architectures() {
			for _, who := range identities() {
				l.report.check(t, software, fmt.Sprintf("bootstrap of %s on %s as %s", plugin.title, arch, who.name), func(t *testing.T) {
					dir := pluginVolume(t)
					p.bootstrap(t, plugin, plugin.reference(), arch, dir, who)
					runner := confined("100:65533")
					if plugin == l.dummy { // the library's folders are for one user
						runner = who.args
					}
					p.serve(t, plugin, arch, runner, "-v", dir+":/plugins:ro")
				})
			}
		}
	}
	l.report.check(t, software, "bootstrap repairs half a copy", func(t *testing.T) { p.repair(t, l.openstack) })
	l.report.check(t, software, "bootstrap refuses a registry with a port", func(t *testing.T) { p.refuse(t, l.openstack) })
	l.report.check(t, software, "image as a volume", func(t *testing.T) {
		p.run(t, "pull", "-q", l.openstack.reference())
		args := append([]string{
			"run", "--rm", "--network", "none", "--tmpfs", "/tmp:mode=1777",
			"--mount", "type=image,source=" + l.openstack.reference() + ",destination=/image",
			"-e", "E2E_PLUGIN=/image/plugin/plugin", "-e", "E2E_READ_ONLY=1",
		}, confined("100:65533")...)
		served(t, p.run(t, append(args, l.guest)...), l.openstack, architectures()[0])
	})
	for _, arch := range architectures() {
		l.report.check(t, software, "image of fleeting-plugin on "+arch, func(t *testing.T) {
			args := append([]string{"run", "--rm", "--network", "none", "--pull", "always", "--platform", "linux/" + arch}, confined("1000660000:0")...)
			if out := p.run(t, append(args, l.tool.reference(), "version")...); !strings.Contains(out, l.tool.version) {
				t.Errorf("it says %s", out)
			}
		})
	}
}

// repair cuts an installed plugin short and bootstraps again.
func (p *podman) repair(t *testing.T, plugin published) {
	t.Helper()
	dir := pluginVolume(t)
	arch, root := architectures()[0], identities()[0]
	p.bootstrap(t, plugin, plugin.reference(), arch, dir, root)
	if err := os.Truncate(filepath.Join(dir, plugin.folder(), "plugin"), 1<<20); err != nil {
		t.Fatal(err)
	}
	p.bootstrap(t, plugin, plugin.reference(), arch, dir, root)
	p.serve(t, plugin, arch, confined("100:65533"), "-v", dir+":/plugins:ro")
}

// refuse wants a message that says what to write instead.
func (p *podman) refuse(t *testing.T, plugin published) {
	t.Helper()
	_, out, err := try(t, p.env, "podman", p.args("run", "--rm", "--network", "none", "-v", pluginVolume(t)+":/plugins",
		plugin.reference(), "bootstrap", "registry.example.com:5050/"+owner+"/plugin")...)
	if err == nil || !strings.Contains(out, "for instance registry.example.com/"+owner+"/plugin") {
		t.Errorf("got %v, %s", err, out)
	}
}

// pluginVolume is a folder such as Kubernetes makes for an emptyDir.
func pluginVolume(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "plugins")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func unmount(dir string) error { return syscall.Unmount(dir, syscall.MNT_DETACH) }
