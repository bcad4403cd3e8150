//go:build e2e

package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/reducedrunner"
)

const simulatorPackage = "github.com/radome-io/fleeting-plugin-openstack/cmd/openstack-simulator"

// buildRunner builds what can be had of GitLab Runner.
func (l *lab) buildRunner(t *testing.T) {
	args, err := reducedrunner.Prepare(t.Context(), "runner", filepath.Join(l.dir, "runner"))
	if err != nil {
		t.Fatal(err)
	}
	build(t, "runner", l.binaries(), args...)
}

// runnerVersion is what the runner's module says of itself.
func runnerVersion(t *testing.T) string {
	t.Helper()
	version, err := reducedrunner.Version(t.Context(), "runner")
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// substitute replaces the only occurrence of a text in a file.
func substitute(t *testing.T, file, old, instead string) {
	t.Helper()
	content := readFile(t, file)
	if n := strings.Count(content, old); n != 1 {
		t.Fatalf("%s has %q %d times, not once", file, old, n)
	}
	writeFile(t, file, strings.Replace(content, old, instead, 1))
}

// testRunner has GitLab Runner find our plugin, and run jobs with it.
func testRunner(t *testing.T, l *lab) {
	software := "gitlab-runner " + runnerVersion(t) + ", reduced"
	l.report.check(t, software, "build, with our simulator", func(t *testing.T) {
		l.buildRunner(t)
		compile(t, architectures()[0], "", l.program("openstack-simulator"), simulatorPackage)
		// The simulator names the plugin beside it.
		run(t, nil, "ln", filepath.Join(l.dir, "dist", l.openstack.title, "linux", architectures()[0], "plugin"), l.program("fleeting-plugin-openstack"))
	})
	if t.Failed() {
		return
	}
	for _, c := range findings() {
		l.report.check(t, software, c.what, func(t *testing.T) { c.find(t, l) })
	}
	l.report.check(t, software+", podman "+version(t, "podman", "--version"), "fleeting list in a container finds what bootstrap brought", l.listInContainer)
	for _, c := range runs() {
		l.report.check(t, software, c.what, func(t *testing.T) { c.run(t, l.newSite(t, c.changes...)) })
	}
	for _, c := range procedures() {
		l.report.check(t, software, c.what, func(t *testing.T) { c.run(t, l.newSite(t, c.changes...)) })
	}
}

func (l *lab) program(name string) string { return filepath.Join(l.binaries(), name) }

// finding is a way in which the runner gets to see the plugin.
type finding struct {
	what string
	find func(t *testing.T, l *lab)
}

func findings() []finding {
	return []finding{
		{"fleeting install brings the plugin, and list finds it", func(t *testing.T, l *lab) {
			h := l.newHome(t)
			if out, err := h.fleeting(t, "list"); err == nil || !strings.Contains(out, "plugin not found") {
				t.Errorf("before the installation: %v, %s", err, out)
			}
			if out, err := h.fleeting(t, "install"); err != nil || !strings.Contains(out, l.openstack.folder()) {
				t.Fatalf("install: %v, %s", err, out)
			}
			h.mustFind(t)
		}},
		{"fleeting list finds what fleeting-plugin installed", func(t *testing.T, l *lab) {
			h := l.newHome(t)
			tool := filepath.Join(l.dir, "tool", architectures()[0])
			policy := filepath.Join(h.dir, "policy.toml")
			writeFile(t, policy, l.policy(l.publicKey))
			run(t, h.env(), tool, "install", "--config", h.config, "--policy", policy)
			h.mustFind(t)
		}},
	}
}

// home is of a user with a config.toml.
type home struct {
	l           *lab
	dir, config string
}

func (l *lab) newHome(t *testing.T) home {
	t.Helper()
	h := home{l: l, dir: t.TempDir()}
	h.config = filepath.Join(h.dir, "config.toml")
	writeFile(t, h.config, l.local(documentation(t, "config.toml")))
	return h
}

func (h home) env() []string { return []string{"HOME=" + h.dir, "FLEETING_PLUGIN_PATH="} }

// fleeting runs a subcommand of `gitlab-runner fleeting`.
func (h home) fleeting(t *testing.T, command string) (string, error) {
	t.Helper()
	_, out, err := try(t, h.env(), h.l.program("gitlab-runner"), "fleeting", "--config", h.config, command)
	return out, err
}

// mustFind has the runner name the plugin, which is what was published.
func (h home) mustFind(t *testing.T) {
	t.Helper()
	out, err := h.fleeting(t, "list")
	want := filepath.Join(h.dir, ".config", "fleeting", "plugins", h.l.openstack.folder(), "plugin")
	if err != nil || !strings.Contains(out, "plugin: "+h.l.openstack.image) || !strings.Contains(out, "path: "+want+"\n") {
		t.Fatalf("list: %v, want %s\n%s", err, want, out)
	}
	if got := reported(t, want); got != h.l.openstack.version {
		t.Errorf("it is version %s", got)
	}
	t.Log(strings.TrimSpace(out))
}

// listInContainer puts the runner into an image and lets it look as it does in
// the documentation's Pods, where an init container brought the plugin.
func (l *lab) listInContainer(t *testing.T) {
	arch, image := architectures()[0], l.registry.Host+"/gitlab-runner:1"
	reference, err := name.ParseReference(image, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, imageOf(t, arch, l.program("gitlab-runner"), "gitlab-runner", "/gitlab-runner"), remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	p, dir, config := newPodman(t, l), pluginVolume(t), "/etc/gitlab-runner/config.toml"
	p.bootstrap(t, l.openstack, l.openstack.reference(), arch, dir, identities()[1])
	args := append([]string{
		"run", "--rm", "--network", "none", "-v", dir + ":/plugins:ro", "-v", l.newHome(t).config + ":" + config + ":ro", "-e", "FLEETING_PLUGIN_PATH=/plugins",
	}, confined("100:65533")...)
	out := p.run(t, append(args, image, "fleeting", "--config", config, "list")...)
	if want := "path: " + filepath.Join("/plugins", l.openstack.folder(), "plugin") + "\n"; !strings.Contains(out, want) {
		t.Errorf("it says %s, want %s", out, want)
	}
}
