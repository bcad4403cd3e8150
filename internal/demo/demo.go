// Package demo shows the project's main job, from source to a command that ran
// on a server: build, package, publish, sign, verify, install, run, scale to
// zero. It uses the real commands, a real registry and fleeting's own libraries;
// only the cloud is simulated.
//
// It is a story for people, with times, and a test for us.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// version is what the demo publishes.
const version = "1.2.3"

// Options say where the sources are and where the story goes. Source and Out
// are needed.
type Options struct {
	// Source is the root of the module.
	Source string
	// Out gets the story.
	Out io.Writer
	// Environ is the environment of the commands, as [os.Environ] returns it.
	Environ []string
	// Platforms to build for; none means Linux on three processors and Windows.
	// The platform that the demo runs on is always among them.
	Platforms []artifact.Platform
	// Keep leaves the demo's folder behind, and says where it is.
	Keep bool
}

// demo is the state that the steps share.
type demo struct {
	*story
	opts Options
	dir  string
	env  []string

	registry *registry
	image    string // reference of the published plugin, with its version
	plugin   string // path of the installed executable
	cloud    *cloud
	observer *observer
	runner   *runner
	logs     *os.File
}

// Run tells the whole story. Whatever happens, it ends every process and removes
// every file that it made.
func Run(ctx context.Context, opts Options) (err error) {
	dir, err := os.MkdirTemp("", "fleeting-demo-")
	if err != nil {
		return err
	}
	d := &demo{story: &story{out: opts.Out, now: time.Now}, opts: opts, dir: dir}
	d.shorten(dir, "$DEMO")
	d.env = d.environment()
	defer func() { err = errors.Join(err, d.cleanUp(ctx)) }()
	for _, name := range []string{"home", "tmp"} {
		if err := os.Mkdir(d.path(name), 0o700); err != nil {
			return err
		}
	}
	if d.logs, err = os.Create(d.path("runner.log")); err != nil {
		return err
	}

	fmt.Fprintf(opts.Out, "The main job, from source to a running server. Everything happens in one temporary folder, $DEMO.\n")
	for _, s := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"Build the tools and the plugin for several platforms", d.build},
		{"Package the plugin as one OCI artifact", d.packagePlugin},
		{"Start a registry and publish the plugin", d.publish},
		{"Try to install it: nobody signed it", d.installUnsigned},
		{"Sign it and its SBOMs", d.sign},
		{"Look at what is published", d.inspect},
		{"Install it, verified", d.install},
		{"Start a cloud", d.startCloud},
		{"Run the installed plugin as the runner does", d.startRunner},
		{"Run jobs on servers that are made for them", d.runJobs},
		{"Scale to zero", d.scaleToZero},
	} {
		if err := d.step(s.title, func() error { return s.do(ctx) }); err != nil {
			return d.explain(err)
		}
	}
	d.summary()
	d.whatNext()
	return nil
}

func (d *demo) path(parts ...string) string {
	return filepath.Join(append([]string{d.dir}, parts...)...)
}

// program is the path of one of our commands.
func (d *demo) program(name string) string {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return d.path("bin", name)
}

// environment keeps the commands away from the user's own plugins, credentials
// and clouds.
func (d *demo) environment() []string {
	drop := []string{"TMPDIR=", "FLEETING_PLUGIN_PATH=", "DOCKER_CONFIG=", "REGISTRY_AUTH_FILE=", "XDG_", "HOME=", "OS_", "SOURCE_DATE_EPOCH=", "COSIGN_"}
	var env []string
next:
	for _, entry := range d.opts.Environ {
		for _, prefix := range drop {
			if strings.HasPrefix(entry, prefix) {
				continue next
			}
		}
		env = append(env, entry)
	}
	return append(env,
		"HOME="+d.path("home"),
		"TMPDIR="+d.path("tmp"),
		"FLEETING_PLUGIN_PATH="+d.path("plugins"),
		"COSIGN_PASSWORD=",
	)
}

// explain adds the end of the runner's log to an error, if there is one.
func (d *demo) explain(err error) error {
	const tail = 4 << 10
	log, readErr := os.ReadFile(d.logs.Name())
	if readErr != nil || len(log) == 0 {
		return err
	}
	if len(log) > tail {
		log = log[len(log)-tail:]
	}
	return fmt.Errorf("%w\nthe end of the runner's log:\n%s", err, log)
}

func (d *demo) cleanUp(ctx context.Context) error {
	var errs []error
	if d.runner != nil {
		errs = append(errs, d.runner.close(ctx))
	}
	if d.cloud != nil {
		errs = append(errs, d.cloud.stop())
	}
	if d.registry != nil {
		d.registry.close()
	}
	if d.logs != nil {
		errs = append(errs, d.logs.Close())
	}
	if d.opts.Keep {
		fmt.Fprintf(d.out, "\n$DEMO is kept: %s\n", d.dir)
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, os.RemoveAll(d.dir))...)
}

func (d *demo) whatNext() {
	fmt.Fprint(d.out, `
What to try next:
  make build                      the commands, into build/bin
  build/bin/openstack-simulator   a cloud to play with; it prints a config.toml for the plugin
  build/bin/fleeting-plugin help  package, publish, verify and install a plugin of your own
  docs/README.md                  tutorials, guides, reference
`)
}
