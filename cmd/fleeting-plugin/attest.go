package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// newAttestCmd signs attestations about a published artifact.
func newAttestCmd(app *cli.App) *cobra.Command {
	var statements statementFlags
	cmd := &cobra.Command{
		Use:   "attest REF",
		Short: "Attest the bills of materials and the provenance of a published artifact",
		Long: `Sign attestations about the index that REF resolves to, and about the manifest of
every platform in it: the attached bills of materials, SLSA provenance, and
predicates from files. If REF resolves to a single manifest, attest that. Each
attestation is published in both forms that verifiers look for.

Run it right after push. It signs the bills of materials that it finds, and anyone
with push access can attach one.`,
		Example: `  fleeting-plugin attest registry.example.com/group/plugin:1.2.3 --keyless
  fleeting-plugin attest registry.example.com/group/plugin:1.2.3 --key cosign.key --predicate https://example.com/scan/v1=scan.json`,
		Args: cli.Args(1, 1),
	}
	mapPackagerErrors(app)
	registry := app.RegistryFlags(cmd.Flags())
	flags := addSignFlags(app, cmd.Flags())
	place := addPlaceFlags(app, cmd.Flags())
	cmd.Flags().BoolVar(&statements.provenance, "provenance", true, "attest SLSA provenance from the variables of GitHub Actions or GitLab CI")
	statements.add(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		signer, err := flags.signer(cmd.Context())
		if err != nil {
			return err
		}
		repo, tag, err := openTarget(registry, args[0])
		if err != nil {
			return err
		}
		if tag == "" {
			return cli.Usagef("%s: name the version or digest to attest", args[0])
		}
		if err := statements.check(); err != nil {
			return err
		}
		said, err := packager.PublishedMetadata(cmd.Context(), repo, tag)
		if err != nil {
			return err
		}
		predicates, err := statements.all(cmd.Context(), app, signer, said, false)
		if err != nil {
			return err
		}
		opts := packager.SignOptions{Report: func(e packager.Event) { report(app, e) }}
		if opts.Format, opts.Signatures, err = place.open(registry); err != nil {
			return err
		}
		signed, err := packager.Attest(cmd.Context(), repo, tag, signer, predicates, opts)
		if err != nil {
			return explainImmutable(err)
		}
		return app.Print(signed, func(p *cli.Page) { printSigned(app, p, signed) })
	}
	return cmd
}

// statementFlags are those of commands that attest.
type statementFlags struct {
	provenance bool
	files      []string
	ldflags    string
	set        *pflag.FlagSet
	others     []packager.Predicate
}

func (s *statementFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.files, "predicate", nil, "`TYPE=FILE`: attest the JSON in FILE as a predicate of TYPE, a URI (repeatable)")
	s.addLDFlags(flags)
}

func (s *statementFlags) addLDFlags(flags *pflag.FlagSet) {
	s.set = flags
	flags.StringVar(&s.ldflags, "ldflags", "", "record in the provenance the -ldflags `FLAGS` that the executables were built with, so that others can rebuild them")
}

// check reads the predicates in files, and refuses flags of the linker that are
// empty, as a command that failed gives them.
func (s *statementFlags) check() error {
	if s.set.Changed("ldflags") && strings.TrimSpace(s.ldflags) == "" {
		return cli.Hint(cli.Usagef("--ldflags is empty"),
			"check the command that should print them, such as make -s ldflags; or omit --ldflags")
	}
	for _, f := range s.files {
		predicateType, path, ok := strings.Cut(f, "=")
		if !ok || path == "" || !strings.Contains(predicateType, ":") {
			return cli.Usagef("--predicate %s: write TYPE=FILE, TYPE being a URI", f)
		}
		content, err := readInput(path, "check the path after --predicate "+predicateType+"=")
		if err != nil {
			return fmt.Errorf("predicate %s: %w", predicateType, err)
		}
		s.others = append(s.others, packager.Predicate{Type: predicateType, Content: content})
	}
	return nil
}

// all returns what is attested beside the bills of materials; check comes first.
// The provenance of a keyless signer says what its certificate says; that of a key
// is a build by hand, of the source that the artifact names. A plan asks for no
// certificate.
func (s *statementFlags) all(ctx context.Context, app *cli.App, signer *packager.Signer, artifact packager.Metadata, plan bool) ([]packager.Predicate, error) {
	if !s.provenance {
		return s.others, nil
	}
	build := packager.LocalBuild(app.LookupEnv)
	if build.Source == "" && artifact.Source != "" {
		build.Source, build.Revision = "git+"+artifact.Source, artifact.Revision
	}
	if !plan {
		certified, err := signer.Certified(ctx)
		if err != nil {
			return nil, err
		}
		if certified != nil {
			if b, ok := packager.CertifiedBuild(*certified); ok {
				build = b
			}
		}
	}
	build.LDFlags = s.ldflags
	p, err := build.Provenance()
	return append([]packager.Predicate{p}, s.others...), err
}
