package main

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/modcache"
	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
	"github.com/radome-io/fleeting-plugin-openstack/sbom"
)

// packFlags are those of commands that package executables.
type packFlags struct {
	app          *cli.App
	registry     *cli.RegistryFlags
	windowsBases []string
	metadata     packager.Metadata
	created      string
	platforms    []string
	goreleaserID string
	include      []string
	executables  []string
	skipRun      bool
	// secrets says that a secret to sign with is within reach of what is started.
	secrets  bool
	skipSBOM bool
}

func addPackFlags(app *cli.App, registry *cli.RegistryFlags, flags *pflag.FlagSet) *packFlags {
	p := &packFlags{app: app, registry: registry}
	m := &p.metadata
	for _, f := range []struct {
		target      *string
		name, usage string
	}{
		{&m.Title, "title", "`NAME` of the plugin (default: that of its main package)"},
		{&m.Description, "description", "what the plugin is, in one `SENTENCE`"},
		{&m.Source, "source", "`URL` of the source code (default: from the CI system)"},
		{&m.URL, "url", "`URL` of the project's page (default: the source code)"},
		{&m.Documentation, "documentation", "`URL` of the manual"},
		{&m.Licenses, "licenses", "licence as an SPDX `EXPRESSION`"},
		{&m.Vendor, "vendor", "`NAME` of the publisher (default: from the CI system)"},
		{&m.Authors, "authors", "`NAMES` of the authors"},
		{&m.Revision, "revision", "`COMMIT` that was built (default: from the executables)"},
		{&m.MinimumRunner, "minimum-runner", "oldest `VERSION` of GitLab Runner known to work, such as 17.9"},
		{&p.created, "created", "`TIME` of the commit in RFC 3339, for the artifact and all in it (default: SOURCE_DATE_EPOCH, else from GitLab CI, else from the executables, else none)"},
		{&p.goreleaserID, "goreleaser-id", "`ID` of the build to take from goreleaser's artifacts.json"},
	} {
		flags.StringVar(f.target, f.name, "", f.usage)
	}
	flags.StringArrayVar(&p.platforms, "platform", nil, "`PLATFORM=PATH` of an executable or a folder with it (repeatable; DIR is not read then)")
	flags.StringArrayVar(&p.windowsBases, "windows-base", nil,
		"`IMAGE` that Windows images are built on as well, so that they run as containers (repeatable, one per build of Windows)")
	flags.StringArrayVar(&p.executables, "executable", nil,
		"`NAME` of a companion file that is executable; the others are not (repeatable; '' for none; default: by their modes)")
	flags.StringArrayVar(&p.include, "include", nil,
		"`NAME` of a file beside an executable that is published although it looks like a key, credentials, a hidden file, a leftover or source code (repeatable)")
	flags.BoolVar(&p.skipRun, "no-run", false, "do not run this platform's executable to compare its version, nor look for that in the others")
	flags.BoolVar(&p.skipSBOM, "no-sbom", false, "make no bills of materials")
	return p
}

// scan finds and checks the executables; args is empty or a folder.
func (p *packFlags) scan(ctx context.Context, args []string, version packager.Version) (*dist.Dist, error) {
	opts := dist.Options{GoreleaserID: p.goreleaserID, Include: p.include, Executables: p.executables, Platforms: map[string]string{}}
	for _, s := range p.platforms {
		platform, path, ok := strings.Cut(s, "=")
		if !ok || path == "" {
			return nil, cli.Usagef("--platform %s: write os/arch=PATH", s)
		}
		if _, twice := opts.Platforms[platform]; twice {
			return nil, cli.Usagef("--platform %s: given twice", platform)
		}
		opts.Platforms[platform] = path
	}
	dir := "."
	switch {
	case len(args) > 0 && len(p.platforms) == 0:
		dir = args[0]
	case len(args) > 0:
		return nil, cli.Usagef("give either a folder or --platform")
	case len(p.platforms) == 0:
		return nil, cli.Usagef("give the folder with the executables, or --platform os/arch=PATH")
	}
	found, err := dist.Scan(ctx, dir, opts)
	if err != nil {
		return nil, err
	}
	warnings := found.Warnings()
	if !p.skipRun {
		compare := found.CompareVersion
		if p.secrets {
			compare = found.SearchVersion
		}
		more, err := compare(ctx, version)
		if err != nil {
			return nil, err
		}
		warnings = append(warnings, more...)
	}
	for _, w := range warnings {
		p.app.Warnf("%s", w)
	}
	return found, nil
}

// options gathers what flags and environment say. The current folder says
// nothing: the executables may come from elsewhere.
func (p *packFlags) options(ctx context.Context) (packager.PackOptions, error) {
	detected, err := packager.DetectMetadata(p.app.LookupEnv)
	if err != nil {
		return packager.PackOptions{}, err
	}
	if p.created != "" {
		if p.metadata.Created, err = time.Parse(time.RFC3339, p.created); err != nil {
			return packager.PackOptions{}, cli.Usagef("--created %s: write it as 2026-01-31T12:00:00Z", p.created)
		}
	}
	opts := packager.PackOptions{
		Metadata: p.metadata.Or(detected),
		Tool:     "fleeting-plugin", ToolVersion: cli.NewVersion("fleeting-plugin", version, revision).Version,
		SkipSBOM: p.skipSBOM, Report: p.report,
	}
	opts.Metadata.URL = cmp.Or(opts.Metadata.URL, opts.Metadata.Source)
	if opts.WindowsBases, err = p.bases(); err != nil {
		return packager.PackOptions{}, err
	}
	if dir := moduleCache(ctx, p.app); dir != "" {
		opts.Licenses = sbom.NewModuleCache(dir)
	}
	return opts, nil
}

// bases opens the repositories of the base images.
func (p *packFlags) bases() ([]packager.Base, error) {
	var all []packager.Base
	for _, reference := range p.windowsBases {
		repo, _, err := openTarget(p.registry, reference)
		if err != nil {
			return nil, err
		}
		all = append(all, packager.Base{Reference: reference, From: repo})
	}
	return all, nil
}

// moduleCache is where Go keeps modules: GOMODCACHE, else where the go command
// has it, else below GOPATH. https://go.dev/ref/mod#environment-variables
func moduleCache(ctx context.Context, app *cli.App) string {
	if dir := app.Env("GOMODCACHE"); dir != "" {
		return dir
	}
	if found, err := modcache.Ask(ctx, app.LookupEnv); err == nil {
		return found.ModuleCache
	}
	home := places.Of(app.LookupEnv).Home()
	gopath := filepath.SplitList(app.Env("GOPATH"))
	switch {
	case len(gopath) > 0 && gopath[0] != "":
		return filepath.Join(gopath[0], "pkg", "mod")
	case home != "":
		return filepath.Join(home, "go", "pkg", "mod")
	}
	return ""
}

// report tells people of the steps that they wait for.
func (p *packFlags) report(e packager.Event) { report(p.app, e) }

func report(app *cli.App, e packager.Event) {
	if e.Signed != "" {
		app.Statusf("%-9s %s: %s", e.Kind, e.Subject, e.Signed)
		return
	}
	if e.Done > 0 {
		app.Progress(string(e.Kind), e.Subject, e.Done, e.Size)
		return
	}
	switch e.Kind {
	case packager.EventPacking, packager.EventPacked, packager.EventReading, packager.EventUploading, packager.EventUploaded:
		app.Statusf("%-9s %s (%s)", e.Kind, e.Subject, cli.Size(e.Size))
	case packager.EventTagged:
		app.Statusf("%-9s %s", e.Kind, e.Subject)
	case packager.EventUnlicensed:
		app.Warnf("the bills of materials do not say the licences of %s: run go mod download first, or fleeting-plugin licenses --beside where the executables are built", e.Subject)
	default:
		app.Logger().Debug("step", "kind", string(e.Kind), "subject", e.Subject)
	}
}
