package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/dist"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// The first half of the story: from source to a verified plugin on disk.

// installedAs is the name under which the demo installs. The runner cannot look
// up a registry with a port, which is what a registry on loopback has.
const installedAs = "registry.example.com/demo/fleeting-plugin-openstack"

// refusedByPolicy is the exit code for what a policy does not allow.
const refusedByPolicy = 3

// platforms are those that the demo builds for, with the machine that it runs on.
func (d *demo) platforms() ([]artifact.Platform, error) {
	list := d.opts.Platforms
	if len(list) == 0 {
		var err error
		if list, err = dist.ParsePlatforms("linux/amd64 linux/arm64 windows/amd64"); err != nil {
			return nil, err
		}
	}
	if host := artifact.HostPlatform(); !slices.Contains(list, host) {
		list = append(slices.Clone(list), host)
	}
	return list, nil
}

func (d *demo) build(ctx context.Context) error {
	d.say("$ go build ./cmd/fleeting-plugin ./cmd/openstack-simulator")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", //nolint:gosec // our own commands
		"-o", d.path("bin")+string(filepath.Separator),
		"./cmd/fleeting-plugin", "./cmd/openstack-simulator")
	cmd.Dir = d.opts.Source
	cmd.Env = append(slices.Clone(d.opts.Environ), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the tools: %w\n%s", err, output)
	}
	platforms, err := d.platforms()
	if err != nil {
		return err
	}
	var names []string
	for _, p := range platforms {
		names = append(names, p.String())
	}
	d.say("and the plugin, reproducibly, for %s; each takes a while the first time", strings.Join(names, ", "))
	_, err = dist.Build(ctx, dist.Options{
		Source: d.opts.Source, Out: d.path("dist"), Version: version, Platforms: platforms,
		PluginOnly: true, Env: d.opts.Environ, Log: d,
	})
	return err
}

func (d *demo) tool(args ...string) command {
	return command{program: d.program("fleeting-plugin"), args: args, env: d.env, dir: d.dir}
}

func (d *demo) packagePlugin(ctx context.Context) error {
	args := []string{"package", "--quiet", "dist/plugin", "--version", version, "--layout", "layout"}
	_, err := d.run(ctx, d.tool(append(args, d.commit(ctx)...)...))
	return err
}

// commit says what was built, and when that was committed. A source that is no
// git repository has neither.
func (d *demo) commit(ctx context.Context) []string {
	cmd := exec.CommandContext(ctx, "git", "log", "-1", "--format=%H %cI")
	cmd.Dir = d.opts.Source
	out, err := cmd.Output()
	revision, committed, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !ok {
		return nil
	}
	return []string{"--revision", revision, "--created", committed}
}

func (d *demo) publish(ctx context.Context) error {
	var err error
	if d.registry, err = startRegistry(ctx, "127.0.0.1:0", d.path("registry")); err != nil {
		return err
	}
	d.image = d.registry.host + "/demo/fleeting-plugin-openstack:" + version
	_, err = d.run(ctx, d.tool("push", "--quiet", "layout", d.image))
	return err
}

func (d *demo) installUnsigned(ctx context.Context) error {
	private, public, err := packager.GenerateKeyPair(nil)
	if err != nil {
		return err
	}
	var policy strings.Builder
	policy.WriteString("version = 1\n")
	// The name that it is installed under needs a rule, too.
	for _, scope := range []string{d.registry.host + "/**", installedAs} {
		fmt.Fprintf(&policy, `
[[rule]]
scope = "%s"

  [[rule.key]]
  file = "demo.pub"

  [[rule.attestation]]
  type = "sbom"
`, scope)
	}
	for name, content := range map[string][]byte{"demo.key": private, "demo.pub": public, "policy.toml": []byte(policy.String())} {
		if err := os.WriteFile(d.path(name), content, 0o600); err != nil {
			return err
		}
	}
	d.say("the policy asks for a signature with the demo's key, and for a signed SBOM")
	if err := d.refused(ctx, d.installCommand(), refusedByPolicy); err != nil {
		return err
	}
	if _, err := os.Stat(d.path("plugins", "registry.example.com")); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("what was refused left something in the plugin folder: %w", err)
	}
	return nil
}

// installCommand is the command that installs, refused or not.
func (d *demo) installCommand() command {
	return d.tool("install", "--policy", "policy.toml", "--as", installedAs, d.image)
}

func (d *demo) sign(ctx context.Context) error {
	if _, err := d.run(ctx, d.tool("sign", "--quiet", "--key", "demo.key", d.image)); err != nil {
		return err
	}
	_, err := d.run(ctx, d.tool("attest", "--quiet", "--key", "demo.key", d.image))
	return err
}

// inspect shows what is published, and by whom it says to be.
func (d *demo) inspect(ctx context.Context) error {
	out, err := d.run(ctx, d.tool("inspect", d.image))
	if err != nil {
		return err
	}
	if !strings.Contains(out, "claims to be signed by key ") {
		return errors.New("inspect shows no signatures")
	}
	return nil
}

func (d *demo) install(ctx context.Context) error {
	if _, err := d.run(ctx, d.installCommand()); err != nil {
		return err
	}
	var err error
	d.plugin, err = d.run(ctx, d.tool("lookpath", installedAs+":1.2"))
	if err != nil {
		return err
	}
	_, err = d.run(ctx, command{program: d.plugin, args: []string{"version"}, env: d.env, dir: d.dir})
	return err
}
