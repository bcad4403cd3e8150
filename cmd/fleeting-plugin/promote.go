package main

import (
	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// newPromoteCmd moves the aliases to a version that is published.
func newPromoteCmd(app *cli.App) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "promote REF",
		Short: "Move the aliases of a published version",
		Long: `Move the aliases of REF, host[:port]/path:version: 1.2, 1 and latest. Publish with
--no-aliases, check what is published, and promote it then. Users who follow an
alias get only versions that you checked.

The policy must accept REF, and each higher version that keeps an alias. Aliases
only move forward, never to a prerelease, and only between versions of the same
plugin. You can run it again.`,
		Example: `  fleeting-plugin promote registry.example.com/group/plugin:1.2.3 --key cosign.pub
  fleeting-plugin promote ghcr.io/acme/fleeting-plugin-acme:1.2.3 --policy policy.toml`,
		Args: cli.Args(1, 1),
	}
	mapPackagerErrors(app)
	mapInstallerErrors(app)
	policies := newPolicyFlags(app, cmd)
	registry := app.RegistryFlags(cmd.Flags())
	var signatures string
	addSignatureRepository(cmd.Flags(), &signatures, "look for signatures and attestations in this `REPOSITORY`, too (default $COSIGN_REPOSITORY)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show where the aliases would be, and change nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		repo, version, err := openVersion(registry, args[0])
		if err != nil {
			return err
		}
		policy, err := policies.policy()
		if err != nil {
			return err
		}
		place, err := openSignatures(app, registry, signatures)
		if err != nil {
			return err
		}
		if _, err := policyRule(policy, repo.Name()); err != nil {
			return policies.explain(err)
		}
		v := &voucher{app: app, registry: registry}
		vouch, err := v.vouch(repo.Name(), policy, place)
		if err != nil {
			return err
		}
		promoted, err := packager.Promote(cmd.Context(), repo, version, packager.PromoteOptions{
			Vouch: vouch, DryRun: dryRun, Report: func(e packager.Event) { report(app, e) },
		})
		if err != nil {
			return err
		}
		for _, warning := range promoted.Warnings {
			app.Warnf("%s", warning)
		}
		return app.Print(promoted, func(p *cli.Page) {
			verb := "promoted "
			if dryRun {
				verb = "would promote "
			}
			p.Printf("%s%s:%s\n", verb, promoted.Repository, promoted.Version)
			p.Field(10, "digest", promoted.Digest.String())
			p.Field(10, "aliases", aliases(promoted.Aliases))
		})
	}
	return cmd
}

// policyRule returns the rule for a repository, or the error that there is none.
func policyRule(policy installer.Policy, repository string) (installer.RuleSummary, error) {
	ref, err := installer.ParseReference(repository)
	if err != nil {
		return installer.RuleSummary{}, err
	}
	return policy.RuleFor(ref)
}
