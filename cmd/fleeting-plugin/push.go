package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// newPushCmd copies a layout to a registry.
func newPushCmd(app *cli.App) *cobra.Command {
	var opts packager.PushOptions
	cmd := &cobra.Command{
		Use:   "push LAYOUT REPOSITORY",
		Short: "Push an OCI layout to a registry and move its tags",
		Long: `Push the artifact in the folder LAYOUT to REPOSITORY: content first, then its
referrers, then the version tag, then the aliases. A version that is published
with other content is refused. Aliases (1.2, 1, latest) only move forward, and
never to a prerelease.

You can run it again: existing content is not sent again, and an interrupted
upload continues where it stopped if the registry allows it.`,
		Example: `  fleeting-plugin push build/layout registry.example.com/group/plugin`,
		Args:    cli.Args(2, 2),
	}
	mapPackagerErrors(app)
	registry := app.RegistryFlags(cmd.Flags())
	voucher := addVoucher(app, registry, cmd.Flags())
	cmd.Flags().BoolVar(&opts.Replace, "replace", false, "move the version tag even if it is published with other content")
	cmd.Flags().BoolVar(&opts.SkipAliases, "no-aliases", false, "do not move the aliases 1.2, 1 and latest")
	cmd.Flags().StringArrayVar(&opts.MountFrom, "mount-from", nil, "`REPOSITORY` of the same registry, without the host, that may have the blobs (repeatable)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		repo, tag, err := openTarget(registry, args[1])
		if err != nil {
			return err
		}
		layout := strings.TrimPrefix(args[0], layoutPrefix)
		if err := sameVersion(cmd, layout, tag); err != nil {
			return err
		}
		if opts.Vouch, err = voucher.byPolicy(repo.Name(), nil); err != nil {
			return err
		}
		opts.Report = func(e packager.Event) { report(app, e) }
		pushed, err := packager.Push(cmd.Context(), layout, repo, opts)
		if err != nil {
			return explainPublished(err, "package it again")
		}
		return app.Print(pushed, func(p *cli.Page) { printPushed(app, p, pushed) })
	}
	return cmd
}

// openTarget opens the repository of a reference, and returns its tag.
func openTarget(registry *cli.RegistryFlags, reference string) (packager.Repository, string, error) {
	name, tag, err := packager.ParseReference(reference)
	if err != nil {
		return nil, "", err
	}
	opts, err := registry.Options()
	if err != nil {
		return nil, "", err
	}
	repo, err := packager.Connect(name, opts)
	return repo, tag, err
}

// openVersion opens the repository of a reference that names a version.
func openVersion(registry *cli.RegistryFlags, reference string) (packager.Repository, packager.Version, error) {
	repo, tag, err := openTarget(registry, reference)
	if err != nil {
		return nil, packager.Version{}, err
	}
	if tag == "" {
		return nil, packager.Version{}, cli.Usagef("%s: name the version, as in %s:1.2.3", reference, reference)
	}
	version, err := packager.ParseVersion(tag)
	return repo, version, err
}

// sameVersion refuses what is no layout, and a reference whose tag is not the
// layout's version.
func sameVersion(cmd *cobra.Command, layout, tag string) error {
	source, err := packager.OpenLayout(cmd.Context(), layout)
	if err != nil {
		return cli.Hint(cli.WithCode(err, cli.Usage), "name the folder that fleeting-plugin package wrote with --layout")
	}
	if tag == "" {
		return nil
	}
	want, err := packager.ParseVersion(tag)
	if err != nil {
		return err
	}
	if _, err := source.Resolve(cmd.Context(), want.String()); err != nil {
		return cli.Hintf(cli.WithCode(fmt.Errorf("%s does not hold version %s: %w", layout, want, err), cli.Usage),
			"omit the tag to push the version in the layout")
	}
	return nil
}

func printPushed(app *cli.App, page *cli.Page, p *packager.Pushed) {
	for _, warning := range p.Warnings {
		app.Warnf("%s", warning)
	}
	if p.Replaced != "" {
		app.Warnf("version %s was %s before; users who pinned that digest find it only while the registry keeps it", p.Version, p.Replaced)
	}
	page.Field(10, "published", p.Repository+":"+p.Version.String())
	page.Field(10, "digest", p.Digest.String())
	page.Field(10, "uploaded", fmt.Sprintf("%d blobs, %s; %d were there", p.Uploaded.Blobs, cli.Size(p.Uploaded.Bytes), p.Present.Blobs))
	page.Field(10, "aliases", aliases(p.Aliases))
}

func aliases(all []packager.Alias) string {
	if len(all) == 0 {
		return "none"
	}
	words := make([]string, len(all))
	for i, a := range all {
		words[i] = a.Tag + " → " + a.Version.String()
	}
	return strings.Join(words, ", ")
}
