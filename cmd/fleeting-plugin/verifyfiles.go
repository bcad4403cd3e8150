package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// ownReference is what this project publishes, whose rule is the default.
const ownReference = "ghcr.io/radome-io/fleeting-plugin-openstack"

const (
	nextBundle = "name a sigstore bundle, such as the provenance.sigstore.json beside a release's files, or what gh attestation download wrote"
	nextFile   = "do not use it; download file and bundle again from their publisher; --as REF names the plugin whose rule applies"
)

// fileCheck is the outcome for one file.
type fileCheck struct {
	File    string `json:"file"`
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
	*installer.VerifiedFile
}

// newVerifyFilesCmd holds files and their bundles against the policy.
func newVerifyFilesCmd(app *cli.App) *cobra.Command {
	var bundles []string
	var as string
	cmd := &cobra.Command{
		Use:   "verify-files FILE... --bundle BUNDLE",
		Short: "Check files that are in no registry, such as this tool's own download",
		Long: `Verify files against the policy. BUNDLE is a sigstore bundle in which a signer that
the policy trusts attests SLSA provenance for exactly their content. It was written
by fleeting-plugin attest-files, GitHub's action attest-build-provenance or
gh attestation download, and may have several bundles. No network is used.

The rule for --as REF decides; by default that is the rule for this project's own
releases. The provenance counts as the signature that the rule requires. Bills of
materials are not required. Files that were built from the tag of a denied version
are refused.

Of a folder, every file in it is verified, except BUNDLE. A folder may not have
folders in it.`,
		Example: `  fleeting-plugin verify-files fleeting-plugin-linux-amd64 --bundle provenance.sigstore.json
  fleeting-plugin verify-files download --bundle download/provenance.sigstore.json --as ghcr.io/acme/plugin
  fleeting-plugin verify-files plugin.tar.gz --bundle provenance.sigstore.json --key cosign.pub`,
		Args: cli.Args(1, -1),
	}
	flags := newPolicyFlags(app, cmd)
	mapInstallerErrors(app)
	cmd.Flags().StringArrayVar(&bundles, "bundle", nil, "`FILE` with one or more sigstore bundles (repeatable)")
	cmd.Flags().StringVar(&as, "as", ownReference, "`REF` of the plugin whose rule applies")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if flags.insecure {
			return cli.Hint(cli.Usagef("verify-files cannot skip verification"), "omit --insecure-no-verification")
		}
		if len(bundles) == 0 {
			return cli.Hint(cli.Usagef("name the file with the attestations: --bundle FILE"), nextBundle)
		}
		files, err := filesIn(args, bundles...)
		if err != nil {
			return err
		}
		v, err := newFileVerifier(app, flags, as, bundles)
		if err != nil {
			return err
		}
		return v.run(cmd.Context(), files)
	}
	return cmd
}

// fileVerifier holds files against one rule.
type fileVerifier struct {
	app       *cli.App
	flags     *policyFlags
	installer *installer.Installer
	as        installer.Reference
	bundles   []installer.Bundle
	checks    []fileCheck
}

func newFileVerifier(app *cli.App, flags *policyFlags, as string, bundles []string) (*fileVerifier, error) {
	v := &fileVerifier{app: app, flags: flags}
	var err error
	if v.as, err = installer.ParseReference(as); err != nil {
		return nil, err
	}
	policy, err := flags.policy()
	if err != nil {
		return nil, err
	}
	if _, err := policy.RuleFor(v.as); err != nil {
		return nil, flags.explain(err)
	}
	if v.installer, err = installer.New(policy, installer.WithClock(app.Now), installer.WithLogger(app.Logger())); err != nil {
		return nil, err
	}
	for _, name := range bundles {
		f, err := os.Open(name)
		if err != nil {
			return nil, cli.Hint(cli.WithCode(err, cli.Usage), nextBundle)
		}
		found, err := installer.ReadBundles(f, name)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		v.bundles = append(v.bundles, found...)
	}
	return v, nil
}

// run checks every file, also after one was refused. One failure keeps its exit
// code; of several the first decides.
func (v *fileVerifier) run(ctx context.Context, files []string) error {
	var problems []error
	for _, name := range files {
		c := fileCheck{File: name}
		verified, err := v.one(ctx, name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.Problem = err.Error()
			problems = append(problems, err)
		} else {
			c.OK, c.VerifiedFile = true, &verified
		}
		v.checks = append(v.checks, c)
	}
	if err := v.app.Print(v.checks, v.write); err != nil {
		return err
	}
	if len(problems) == 1 {
		return problems[0]
	}
	return errors.Join(problems...)
}

func (v *fileVerifier) one(ctx context.Context, name string) (installer.VerifiedFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return installer.VerifiedFile{}, err
	}
	defer f.Close() //nolint:errcheck // read only
	verified, err := v.installer.VerifyFile(ctx, v.as, f, v.bundles...)
	if err == nil {
		return verified, nil
	}
	err = fmt.Errorf("%s: %w", name, err)
	if errors.Is(err, installer.ErrRefused) && !errors.Is(err, installer.Reason("unknown-log")) {
		err = cli.Hint(err, nextFile)
	}
	return verified, err
}

// write lists the files, and after them once each who vouches for them.
func (v *fileVerifier) write(p *cli.Page) {
	var rows [][]string
	var vouched []string
	for _, c := range v.checks {
		state := "REFUSED"
		if c.OK {
			state = "as attested"
			if c.Name != "" && c.Name != filepath.Base(c.File) {
				state += ", as " + c.Name
			}
			for _, e := range c.Verification.Evidence {
				if text := v.describe(c.Verification, e); !slices.Contains(vouched, text) {
					vouched = append(vouched, text)
				}
			}
		}
		rows = append(rows, []string{c.File, state})
	}
	p.Table([]string{"file", "content"}, rows)
	for _, text := range vouched {
		p.Print("\n" + text)
	}
}

// describe says who vouches, and where the rule is from.
func (v *fileVerifier) describe(because installer.Verification, e installer.Evidence) string {
	var text strings.Builder
	line := func(label, value string) {
		if value != "" {
			fmt.Fprintf(&text, "  %-11s  %s\n", label, plaintext.Line(value))
		}
	}
	line("rule", v.flags.rule(because.Rule))
	line("attested by", e.Signer())
	writeEvidence(line, e)
	return text.String()
}
