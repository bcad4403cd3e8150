package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// newSignCmd signs a published artifact.
func newSignCmd(app *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sign REF",
		Short: "Sign a published artifact",
		Long: `Sign the index that REF resolves to, and the manifest of every platform in it,
with a key or keyless. If REF resolves to a single manifest, sign that.

Each signature is published in both forms that verifiers look for: under the tag
sha256-….sig, and as a sigstore bundle among the referrers. If the registry does not
move the tags of one form, the other one suffices. What the same key or identity
signed before is not signed again.`,
		Example: `  COSIGN_PASSWORD=… fleeting-plugin sign registry.example.com/group/plugin:1.2.3 --key cosign.key
  fleeting-plugin sign registry.example.com/group/plugin:1.2.3 --keyless`,
		Args: cli.Args(1, 1),
	}
	mapPackagerErrors(app)
	registry := app.RegistryFlags(cmd.Flags())
	flags := addSignFlags(app, cmd.Flags())
	place := addPlaceFlags(app, cmd.Flags())
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
			return cli.Usagef("%s: name the version or digest to sign", args[0])
		}
		opts := packager.SignOptions{Report: func(e packager.Event) { report(app, e) }}
		if opts.Format, opts.Signatures, err = place.open(registry); err != nil {
			return err
		}
		signed, err := packager.Sign(cmd.Context(), repo, tag, signer, opts)
		if err != nil {
			return explainImmutable(err)
		}
		return app.Print(signed, func(p *cli.Page) { printSigned(app, p, signed) })
	}
	return cmd
}

func printSigned(app *cli.App, p *cli.Page, s *packager.Signed) {
	for _, warning := range s.Warnings {
		app.Warnf("%s", warning)
	}
	verb := "there"
	for _, o := range s.Outcomes {
		if o.New > 0 {
			verb = "signed"
		}
	}
	which := ", the index among them"
	if len(s.Manifests) == 1 {
		which = ", there is no index"
	}
	p.Field(10, verb, s.Repository+"@"+s.Digest.String())
	p.Field(10, "manifests", fmt.Sprint(len(s.Manifests))+which)
	if s.Signatures != "" {
		p.Field(10, "signatures", s.Signatures)
	}
	label := "attested"
	for _, o := range s.Outcomes {
		became := "there"
		switch {
		case o.New > 0 && o.Present > 0:
			became = fmt.Sprintf("%d new, %d there", o.New, o.Present)
		case o.New > 0:
			became = fmt.Sprintf("%d new", o.New)
		}
		if o.What == "signature" {
			label = "signature"
		}
		line := o.What + ": "
		if o.What == "signature" {
			line = ""
		}
		p.Field(10, label, line+became)
		label = ""
	}
}
