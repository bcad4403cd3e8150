package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// newAttestFilesCmd signs one attestation about files that are in no registry.
func newAttestFilesCmd(app *cli.App) *cobra.Command {
	var bundle string
	statements := statementFlags{provenance: true}
	cmd := &cobra.Command{
		Use:   "attest-files FILE... --bundle BUNDLE",
		Short: "Attest the provenance of files that are in no registry",
		Long: `Sign the SLSA provenance of this CI job for files, such as those of a release, and
write it to BUNDLE: one sigstore bundle for all of them. Users verify it with
fleeting-plugin verify-files, gh attestation verify --bundle or
cosign verify-blob-attestation.

Of a folder, every file in it is attested, except BUNDLE. A folder may not have
folders in it. An existing BUNDLE is replaced if it is about the same files.`,
		Example: `  fleeting-plugin attest-files build/release --bundle build/release/provenance.sigstore.json --keyless
  fleeting-plugin attest-files plugin.tar.gz plugin.spdx.json --bundle provenance.sigstore.json --key cosign.key`,
		Args: cli.Args(1, -1),
	}
	mapPackagerErrors(app)
	flags := addSignFlags(app, cmd.Flags())
	cmd.Flags().StringVar(&bundle, "bundle", "", "`FILE` to write the attestation to, such as provenance.sigstore.json")
	statements.addLDFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if bundle == "" {
			return cli.Usagef("name the file to write the attestation to: --bundle FILE")
		}
		files, err := filesIn(args, bundle)
		if err != nil {
			return err
		}
		signer, err := flags.signer(cmd.Context())
		if err != nil {
			return err
		}
		if err := statements.check(); err != nil {
			return err
		}
		predicates, err := statements.all(cmd.Context(), app, signer, packager.Metadata{}, false)
		if err != nil {
			return err
		}
		attested, err := packager.AttestFiles(cmd.Context(), files, bundle, signer, predicates[0])
		if err != nil {
			return explain(err)
		}
		return app.Print(attested, func(p *cli.Page) {
			for _, f := range attested.Files {
				p.Command(f.Digest.Encoded()+"  ", f.Name) // as sha256sum reads it
			}
			p.Print("\n")
			p.Field(10, "attested", attested.PredicateType)
			p.Field(10, "bundle", attested.Bundle)
		})
	}
	return cmd
}

// filesIn replaces each folder by the files in it, and leaves out the bundles that
// are about them. It refuses a folder that holds anything else: nobody would know
// whether that was meant.
func filesIn(args []string, bundles ...string) ([]string, error) {
	var files []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, cli.Hint(cli.WithCode(err, cli.Usage), nextFiles)
		}
		if !info.IsDir() {
			files = append(files, arg)
			continue
		}
		entries, err := os.ReadDir(arg)
		if err != nil {
			return nil, cli.WithCode(err, cli.Usage)
		}
		for _, e := range entries {
			path := filepath.Join(arg, e.Name())
			if !e.Type().IsRegular() {
				return nil, cli.Hint(cli.Usagef("%s is not a regular file", path), "name the files themselves, or move this one away")
			}
			files = append(files, path)
		}
	}
	files = slices.DeleteFunc(files, func(path string) bool { return isOneOf(path, bundles) })
	if len(files) == 0 {
		return nil, cli.Hint(cli.Usagef("%s: no file but the bundle", strings.Join(args, ", ")), nextFiles)
	}
	return files, nil
}

const nextFiles = "name files, or a folder with files"

func isOneOf(path string, others []string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(others, func(other string) bool {
		o, err := os.Stat(other)
		return err == nil && os.SameFile(info, o)
	})
}
