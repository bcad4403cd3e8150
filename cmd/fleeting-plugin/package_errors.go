package main

import (
	"errors"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// mapPackagerErrors says which exit code and hint go with the errors of the
// packager.
func mapPackagerErrors(app *cli.App) {
	app.MapError(packager.ErrVersion, cli.Usage, "give a version such as 1.2.3 or 1.2.3-rc.1")
	app.MapError(packager.ErrReference, cli.Usage, "write host[:port]/path:version")
	app.MapError(packager.ErrPublished, cli.Failed, "publish a new version; --replace moves this one, and breaks users who pinned it")
	app.MapError(packager.ErrAliasTaken, cli.Failed, "publish to its own repository, delete the alias, or move no aliases with --no-aliases")
	app.MapError(packager.ErrNotVouched, cli.Refused, "sign it first, or name the policy that accepts it")
	app.MapError(dist.ErrInput, cli.Usage, "")
	app.MapError(packager.ErrExists, cli.Usage, "choose another folder with --layout, or empty this one")
	app.MapError(packager.ErrNotPlugin, cli.Failed, "check the reference: it must resolve to a plugin that fleeting-plugin package or the runner's releaser made")
	app.MapError(packager.ErrPassword, cli.Usage, "try again, or set COSIGN_PASSWORD, or give --password-file")
	app.MapError(packager.ErrKey, cli.Usage, "name a private key, such as the cosign.key that cosign generate-key-pair writes")
	app.MapError(packager.ErrNoIdentity, cli.Usage, "give --identity-token, or sign with --key")
	app.MapError(packager.ErrSigningOptions, cli.Usage, "")
	app.MapError(packager.ErrToken, cli.Failed, "the token must be for the audience sigstore, and fresh")
	app.MapError(packager.ErrTrustedRoot, cli.Failed, "give the trusted root of the services that signed with --trusted-root; no tag was moved")
	app.MapError(packager.ErrSigningService, cli.Network, "check the service's address and try again: what was published stays and is not published twice")
}

// explainImmutable says where signatures can go if tags cannot be written again.
func explainImmutable(err error) error {
	if !errors.Is(err, packager.ErrImmutable) {
		return err
	}
	return cli.Hint(err, "publish signatures to a repository whose tags may move: --signature-repository host/path; users verify with the same flag. A version never moves: publish a new one")
}

// explainPublished says with which flags again gives what is published, where
// nothing but what flags say differs.
func explainPublished(err error, again string) error {
	published, ok := errors.AsType[*packager.PublishedError](err)
	if !ok || len(published.Differences) == 0 {
		return err
	}
	var with, without []string
	for _, d := range published.Differences {
		switch {
		case d.Annotation == "":
			return err
		case d.Published != "":
			with = append(with, "--"+d.Annotation+" '"+strings.ReplaceAll(d.Published, "'", `'\''`)+"'")
		case d.Annotation == "created":
			without = append(without, "--created and SOURCE_DATE_EPOCH")
		default:
			without = append(without, "--"+d.Annotation)
		}
	}
	var words []string
	if len(with) > 0 {
		words = append(words, "with "+strings.Join(with, " "))
	}
	if len(without) > 0 {
		words = append(words, "without "+strings.Join(without, ", "))
	}
	return cli.Hintf(err, "%s %s: the executables are those that are published; or publish under a new version", again, strings.Join(words, " and "))
}

// explain gives an error about the input the remedies as a hint.
func explain(err error) error {
	remedies := remediesOf(err)
	if len(remedies) == 0 {
		return err
	}
	return cli.Hint(err, strings.Join(remedies, "\n      "))
}

// remediesOf walks the tree of joined and wrapped errors.
func remediesOf(err error) []string {
	var found []string
	if e, ok := err.(*dist.InputError); ok { //nolint:errorlint // each of the tree is looked at
		if e.Remedy != "" {
			found = append(found, e.Remedy)
		}
		return found
	}
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() []error }:
		for _, child := range e.Unwrap() {
			found = append(found, remediesOf(child)...)
		}
	case interface{ Unwrap() error }:
		found = remediesOf(e.Unwrap())
	}
	return found
}
