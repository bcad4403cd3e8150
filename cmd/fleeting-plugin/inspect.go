package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// newInspectCmd shows what is published.
func newInspectCmd(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect REF|LAYOUT[:VERSION]",
		Short: "Show platforms, signatures, attestations and bills of materials of an artifact",
		Long: `Show what REF resolves to: its platforms, their sizes and every file of their
layers, who claims to have signed it, its attestations and bills of materials,
and which aliases point to it. REF may also be the folder of an OCI layout.

To list the files, inspect fetches the layer of every platform, unless --no-files
is given. Nothing is verified here; fleeting-plugin verify does that. Anything
missing, malformed or too large is listed as such, beside what could be read.`,
		Example: `  fleeting-plugin inspect registry.example.com/group/plugin:latest
  fleeting-plugin inspect build/layout:1.2.3 --output json`,
		Args: cli.Args(1, 1),
	}
	mapPackagerErrors(app)
	registry := app.RegistryFlags(cmd.Flags())
	var opts packager.InspectOptions
	var signatures string
	addSignatureRepository(cmd.Flags(), &signatures, "look for signatures and attestations in this `REPOSITORY`, too (default $COSIGN_REPOSITORY)")
	cmd.Flags().BoolVar(&opts.SkipFiles, "no-files", false, "do not fetch the layers to list their files")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		source, reference, err := openSource(cmd, registry, args[0])
		if err != nil {
			return err
		}
		opts.Report = func(e packager.Event) { report(app, e) }
		elsewhere, err := openSignatures(app, registry, signatures)
		if err != nil {
			return err
		}
		if elsewhere != nil {
			opts.Signatures = elsewhere
		}
		found, err := packager.Inspect(cmd.Context(), source, reference, opts)
		if err != nil {
			return err
		}
		if n := len(found.Unread); n > 0 {
			app.Warnf("not everything could be read, see %q in the report: %d", "could not be read", n)
		}
		return app.Print(found, func(p *cli.Page) { printReport(p, found) })
	}
	return cmd
}

// openSource opens a layout, if the argument names one, or a repository.
func openSource(cmd *cobra.Command, registry *cli.RegistryFlags, arg string) (packager.Source, string, error) {
	if !strings.Contains(arg, "://") {
		arg = strings.TrimPrefix(arg, layoutPrefix)
	}
	dir, tag, ok := layoutIn(arg)
	if !ok {
		if info, err := os.Stat(arg); err == nil && info.IsDir() {
			return nil, "", cli.Hint(cli.Usagef("%s is a folder and holds no OCI layout", arg),
				"name the folder that fleeting-plugin package wrote with --layout")
		}
		if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
			return nil, "", cli.Hint(cli.Usagef("%s is a file; inspect reads a REF or an OCI layout folder", arg),
				"unpack it: tar -xf "+arg+" -C DIR, then: fleeting-plugin inspect DIR")
		}
		if places.IsPath(arg) {
			return nil, "", cli.Hint(cli.Usagef("%s: no OCI layout is there", arg), "name the folder that fleeting-plugin package wrote with --layout, or a REF")
		}
		repo, reference, err := openTarget(registry, arg)
		return repo, cmp.Or(reference, "latest"), err
	}
	layout, err := packager.OpenLayout(cmd.Context(), dir)
	if err != nil || tag != "" {
		return mirrored(layout, tag), tag, err
	}
	tags, err := layout.Tags(cmd.Context())
	if err != nil {
		return nil, "", err
	}
	found := map[digest.Digest]bool{}
	tags = slices.DeleteFunc(tags, func(tag string) bool {
		_, name := splitTag(tag)
		return strings.HasPrefix(name, "sha256-") // a signature, or a list of what hangs off something
	})
	for _, tag := range tags {
		desc, err := layout.Resolve(cmd.Context(), tag)
		if err != nil {
			return nil, "", err
		}
		found[desc.Digest] = true
	}
	if len(found) != 1 {
		return nil, "", cli.Usagef("%s holds %s: name one, as in %s:VERSION", dir, strings.Join(tags, ", "), dir)
	}
	return mirrored(layout, tags[0]), tags[0], nil
}

// repositoryLayout is one repository of a layout that mirror made, in which tags
// are whole references.
type repositoryLayout struct {
	packager.Source
	repository string // with the colon
}

// mirrored narrows a layout to the repository of a tag that names one.
func mirrored(layout packager.Source, tag string) packager.Source {
	if repository, _ := splitTag(tag); repository != "" {
		return repositoryLayout{layout, repository}
	}
	return layout
}

// splitTag splits "host:port/path:tag" before the tag, and gives a tag alone
// back as it is.
func splitTag(tag string) (repository, name string) {
	i := strings.LastIndexByte(tag, ':')
	return tag[:i+1], tag[i+1:]
}

// Resolve finds tags of the repository without its name too.
func (l repositoryLayout) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	desc, err := l.Source.Resolve(ctx, l.repository+reference)
	if errors.Is(err, ociregistry.ErrNotFound) {
		return l.Source.Resolve(ctx, reference)
	}
	return desc, err
}

// Tags returns those of the repository, without its name.
func (l repositoryLayout) Tags(ctx context.Context) ([]string, error) {
	all, err := l.Source.Tags(ctx)
	var own []string
	for _, tag := range all {
		if name, ok := strings.CutPrefix(tag, l.repository); ok {
			own = append(own, name)
		}
	}
	return own, err
}

// layoutIn splits an argument into the folder of a layout and what follows it
// after a colon: tags of layouts may hold colons themselves.
func layoutIn(arg string) (dir, tag string, ok bool) {
	for i := 1; i <= len(arg); i++ {
		if i < len(arg) && arg[i] != ':' {
			continue
		}
		if _, err := os.Stat(filepath.Join(arg[:i], ocispec.ImageLayoutFile)); err == nil {
			return arg[:i], strings.TrimPrefix(arg[i:], ":"), true
		}
	}
	return "", "", false
}
