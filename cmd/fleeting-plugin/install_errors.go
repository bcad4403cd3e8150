package main

import (
	"errors"
	"net"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
)

// explained adds what to do about a name that the runner cannot look up.
func explained(ref installer.Reference, err error) error {
	if errors.Is(err, installer.ErrName) {
		return cli.Hint(err, asName(ref))
	}
	return err
}

func asName(ref installer.Reference) string {
	return "install it under a name that the runner can look up: --as " + nameFor(ref)
}

// nameFor is a name to install a plugin under: its own, without the port.
func nameFor(ref installer.Reference) string {
	host, _, err := net.SplitHostPort(ref.Registry())
	name := host + "/" + ref.Repository()
	if again, invalid := installer.ParseReference(name); err != nil || invalid != nil || again.Name() != name || !strings.Contains(host, ".") {
		return "registry.example.com/team/plugin"
	}
	return name
}

// mapInstallerErrors says which exit codes and hints go with the installer's
// errors; the narrow ones come first.
func mapInstallerErrors(app *cli.App) {
	for _, m := range []struct {
		target error
		code   cli.Code
		hint   string
	}{
		{installer.ErrNoRule, cli.Refused, "fleeting-plugin policy init"},
		{installer.ErrNotAttested, cli.Refused, nextFile},
		{installer.ErrBundle, cli.Refused, nextBundle},
		{installer.ErrUnsigned, cli.Refused, "ask the publisher for a signed release; fleeting-plugin inspect REF shows what there is"},
		{installer.ErrOnePlatform, cli.Refused, "ask the publisher to sign the index, too, and find out who put this one there; verify without --all-platforms is for one platform"},
		{installer.ErrUnknownLog, cli.Refused, "name a trusted root that has this log: --trusted-root FILE, or trusted-root in the policy; cosign trusted-root create writes one"},
		{installer.ErrSignerChanged, cli.Refused, "if the new signer is right: --accept-signer-change"},
		{installer.ErrDowngrade, cli.Refused, "if the older version is wanted: --allow-downgrade, which removes newer ones"},
		{installer.ErrMoved, cli.Refused, "a version never changes: ask the publisher why it did"},
		{installer.ErrOccupied, cli.Refused, "name another destination; if it is the same plugin, find out which of the two is right: a version never changes"},
		{installer.ErrMismatch, cli.Refused, "the bytes are not those that were published: tell the registry's administrator"},
		{installer.ErrChanged, cli.Refused, "find out who changed it, then: fleeting-plugin install --reinstall REF"},
		{installer.ErrShadowed, cli.Refused, "see what is there: fleeting-plugin list; remove what the runner must not take: fleeting-plugin uninstall NAME:VERSION"},
		{installer.ErrSymlink, cli.Refused, "find out who made the link, and remove it; the folder itself may be a link"},
		{installer.ErrHostile, cli.Refused, "tell the publisher; nothing was installed"},
		{installer.ErrTooLarge, cli.Refused, "tell the publisher, and whoever may push there; nothing was installed"},
		{installer.ErrLimit, cli.Refused, "tell the publisher; nothing was installed"},
		{installer.ErrCorrupt, cli.Refused, "tell the publisher; nothing was installed"},
		{installer.ErrRefused, cli.Refused, "fleeting-plugin inspect REF shows what there is; the policy says what is wanted"},
		{installer.ErrEvidence, cli.Network, "try again: without its signatures the plugin is not installed"},
		{installer.ErrNoSpace, cli.Failed, "make room there, fleeting-plugin prune removes old versions; or name another folder with --dir"},
		{installer.ErrSparse, cli.Failed, "copy all platforms, or to a tar file; distribution takes it with validation.manifests.indexes.platforms: none"},
		{installer.ErrNoVersion, cli.NotFound, "choose one of the published versions"},
		{installer.ErrNoPlatform, cli.NotFound, "ask the publisher for this platform, or choose another with --platform"},
		{installer.ErrNotInstalled, cli.NotFound, "fleeting-plugin list shows what is installed; fleeting-plugin install REF installs"},
		{installer.ErrNotPlugin, cli.Failed, "check the reference: fleeting-plugin inspect REF"},
		{installer.ErrName, cli.Usage, "install it under a name that the runner can look up: --as registry.example.com/team/plugin"},
		{installer.ErrInvalidReference, cli.Usage, "write it as [registry/][repository/]name[:constraint][@digest]"},
		{installer.ErrInvalidPolicy, cli.Usage, "mend the file; https://github.com/radome-io/fleeting-plugin-openstack/blob/main/docs/reference/policy.md has every key"},
		{installer.ErrNotLocked, cli.NotFound, "fleeting-plugin lock REF"},
		{installer.ErrInvalidLock, cli.Usage, "write it anew: fleeting-plugin lock"},
		{installer.ErrInvalidConfig, cli.Usage, "name the runner's configuration: --config FILE"},
	} {
		app.MapError(m.target, m.code, m.hint)
	}
}
