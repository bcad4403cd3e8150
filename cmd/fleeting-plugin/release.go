package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// releaseResult is what release tells programs.
type releaseResult struct {
	*packager.Released
	Checksums *packager.Checksums `json:"checksums,omitempty"`
}

// releaseFlags are those that only release has.
type releaseFlags struct {
	opts         packager.ReleaseOptions
	unsigned     bool
	noProvenance bool
	noChecksums  bool
	bundle       string
	statements   statementFlags
	place        *placeFlags
	voucher      *voucher
	// told counts the warnings about the executables, which come first.
	told int
}

// newReleaseCmd does all that publishing takes.
func newReleaseCmd(app *cli.App) *cobra.Command {
	var f releaseFlags
	cmd := &cobra.Command{
		Use:   "release DIR REF",
		Short: "Package, push, sign and attest a release in one go",
		Long: `Package the executables below DIR (see fleeting-plugin package) and publish them
as REF, host[:port]/path:version: content, bills of materials, signatures and
attestations first, then the version tag, then the aliases. Before the version
tag is written, users see nothing. After an interruption, run it again: finished
steps are not repeated.

With --keyless or --key env://, release does not start an executable to compare
its version, because an executable could read the secrets of the job. It searches
the executable for the version instead. To compare the version, run
fleeting-plugin package in a job without secrets.

SHA256SUMS, and a bundle with its signature, are written into DIR, for publishers
who also publish the plain executables.`,
		Example: `  fleeting-plugin release dist registry.example.com/group/plugin:1.2.3 --key cosign.key
  fleeting-plugin release dist "$CI_REGISTRY_IMAGE:$CI_COMMIT_TAG" --keyless --dry-run`,
		Args: cli.Args(1, 2),
	}
	mapPackagerErrors(app)
	registry := app.RegistryFlags(cmd.Flags())
	pack := addPackFlags(app, registry, cmd.Flags())
	sign := addSignFlags(app, cmd.Flags())
	f.place = addPlaceFlags(app, cmd.Flags())
	f.voucher = addVoucher(app, registry, cmd.Flags())
	cmd.Flags().BoolVar(&f.opts.DryRun, "dry-run", false, "show what would be published, and change nothing")
	cmd.Flags().BoolVar(&f.opts.Replace, "replace", false, "move the version tag even if it is published with other content")
	cmd.Flags().BoolVar(&f.opts.SkipAliases, "no-aliases", false, "do not move the aliases 1.2, 1 and latest")
	cmd.Flags().StringArrayVar(&f.opts.MountFrom, "mount-from", nil, "`REPOSITORY` of the same registry, without the host, that may have the blobs (repeatable)")
	cmd.Flags().BoolVar(&f.unsigned, "insecure-unsigned", false, "publish without a signature; installers refuse it by default")
	cmd.Flags().BoolVar(&f.noProvenance, "no-provenance", false, "attest no SLSA provenance")
	cmd.Flags().BoolVar(&f.noChecksums, "no-checksums", false, "write no SHA256SUMS into DIR")
	cmd.Flags().StringVar(&f.bundle, "provenance-bundle", "", "write the SLSA provenance to this `FILE`, too, as the sigstore bundle that is published")
	f.statements.add(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.run(cmd, app, registry, pack, sign, args)
	}
	return cmd
}

func (f *releaseFlags) run(cmd *cobra.Command, app *cli.App, registry *cli.RegistryFlags, pack *packFlags, sign *signFlags, args []string) error {
	reference := args[len(args)-1]
	repo, v, err := openVersion(registry, reference)
	if err != nil {
		return err
	}
	if f.opts.Signer, err = f.signer(cmd.Context(), sign); err != nil {
		return err
	}
	pack.secrets = sign.inEnvironment()
	if f.opts.Format, f.opts.Signatures, err = f.place.open(registry); err != nil {
		return err
	}
	found, err := f.prepare(cmd.Context(), app, pack, args[:len(args)-1], v)
	if err != nil {
		return explain(err)
	}
	if !f.opts.SkipAliases {
		if f.opts.Vouch, err = f.voucher.bySigner(cmd.Context(), repo.Name(), f.opts.Signer, sign, f.opts.Signatures, f.opts.DryRun); err != nil {
			return err
		}
	}
	var result releaseResult
	if result.Released, err = packager.Release(cmd.Context(), found, v, repo, f.opts); err != nil {
		return explainPublished(explainImmutable(explain(err)), "run the same command again")
	}
	if !f.noChecksums && !f.opts.DryRun {
		if result.Checksums, err = packager.WriteChecksums(cmd.Context(), found, f.opts.Signer); err != nil {
			return fmt.Errorf("%s is published, but: %w", result.Reference, err)
		}
	}
	if err := f.writeBundle(result.Released); err != nil {
		return fmt.Errorf("%s is published, but: %w", result.Reference, err)
	}
	return app.Print(result, func(p *cli.Page) { f.print(app, p, result) })
}

// prepare scans the executables, and settles what is said about them.
func (f *releaseFlags) prepare(ctx context.Context, app *cli.App, pack *packFlags, args []string, v packager.Version) (*dist.Dist, error) {
	f.statements.provenance = !f.noProvenance
	if err := f.statements.check(); err != nil {
		return nil, err
	}
	found, err := pack.scan(ctx, args, v)
	if err != nil {
		return nil, err
	}
	f.told = len(found.Warnings())
	warnings, err := found.CompareLDFlags(ctx, f.statements.ldflags)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		app.Warnf("%s", w)
	}
	if f.opts.PackOptions, err = pack.options(ctx); err != nil || f.opts.Signer == nil {
		return found, err
	}
	said := f.opts.Metadata
	said.Revision = cmp.Or(said.Revision, found.Revision())
	f.opts.Predicates, err = f.statements.all(ctx, app, f.opts.Signer, said, f.opts.DryRun)
	return found, err
}

// writeBundle writes the provenance that was published.
func (f *releaseFlags) writeBundle(r *packager.Released) error {
	for _, b := range r.Bundles {
		if f.bundle != "" && b.PredicateType == packager.PredicateProvenance {
			return durable.WriteFile(f.bundle, b.Content, 0o644)
		}
	}
	return nil
}

// signer refuses to publish without a signature by accident.
func (f *releaseFlags) signer(ctx context.Context, sign *signFlags) (*packager.Signer, error) {
	switch {
	case sign.given() && f.unsigned:
		return nil, cli.Usagef("--insecure-unsigned excludes --key and --keyless")
	case f.unsigned && len(f.statements.files) > 0:
		return nil, cli.Usagef("--predicate needs --key or --keyless: an attestation is signed")
	case f.bundle != "" && (f.unsigned || f.noProvenance):
		return nil, cli.Usagef("--provenance-bundle excludes --insecure-unsigned and --no-provenance: there is none")
	case f.unsigned:
		return nil, nil //nolint:nilnil // no signer is what was asked for
	case !sign.given():
		return nil, cli.Hint(cli.Usagef("choose how to sign the release"), "give --key FILE or --keyless; --insecure-unsigned publishes without a signature")
	}
	return sign.signer(ctx)
}

func (f *releaseFlags) print(app *cli.App, p *cli.Page, r releaseResult) {
	printPlatforms(p, r.Platforms)
	p.Print("\n")
	if r.DryRun {
		for _, warning := range r.Warnings[f.told:] {
			app.Warnf("%s", warning)
		}
		p.Printf("would publish %s\n", r.Reference)
		p.Field(10, "layers", fmt.Sprintf("%d to upload, %s; %d are there", r.Uploaded.Blobs, cli.Size(r.Uploaded.Bytes), r.Present.Blobs))
		p.Field(10, "aliases", aliases(r.Aliases))
	} else {
		pushed := r.Pushed
		pushed.Warnings = pushed.Warnings[f.told:]
		printPushed(app, p, &pushed)
	}
	p.Field(10, "created", told(r.Created))
	for _, line := range []struct {
		name string
		list []string
	}{{"documents", r.Documents}, {"attested", r.Attested}} {
		label := line.name
		for _, one := range line.list {
			p.Field(10, label, one)
			label = ""
		}
	}
	if r.Checksums != nil {
		p.Field(10, "checksums", r.Checksums.File)
	}
	p.Field(10, "signed", fmt.Sprintf("%d manifests", len(r.Signed)))
}
